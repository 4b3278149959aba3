/* The image of gpu_kernels.cu as data: gpu_run_image, and its size in gpu_run_image_size. */
        .section .rodata
        .balign 16
        .globl  gpu_run_image
        .hidden gpu_run_image
gpu_run_image:
        .incbin GPU_RUN_IMAGE
1:      .balign 8
        .globl  gpu_run_image_size
        .hidden gpu_run_image_size
gpu_run_image_size:
        .quad   1b - gpu_run_image
        .section .note.GNU-stack, "", @progbits
