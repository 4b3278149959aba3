/* The exported functions of libvramd.so that must not disturb a register: every driver name, dlsym and dlvsym. */
#if !defined(__x86_64__) || !defined(__linux__)
#error "libvramd.so has entry points for x86-64 Linux only: write a trampolines_<architecture>.S beside this one"
#endif

        .text

/* A driver name: jump where vramd_trampoline_targets says, or find that out first. 32 bytes each, in the order of the
   generated list, so that an entry's export is found by its number (exports.cpp). */
        .macro TRAMPOLINE name, index
        .balign 32, 0xcc
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        movq    vramd_trampoline_targets+8*\index(%rip), %r11
        testq   %r11, %r11
        jz      0f
        jmpq    *%r11
0:      movl    $\index, %r11d
        jmp     resolve_and_jump
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .balign 32, 0xcc
        .globl  vramd_trampolines
        .hidden vramd_trampolines
vramd_trampolines:
#include "shim/hook/generated/trampolines.inc"

/* The first call of a driver name. All registers that carry arguments survive, the floating-point ones too
   (cuTexRefSetMipmapLevelBias), and rax (the count of vector registers of a variadic call). */
        .balign 32, 0xcc
        .type   resolve_and_jump, @function
resolve_and_jump:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        subq    $192, %rsp              /* 8 general registers, 8 vector registers; rsp is a multiple of 16 here */
        movq    %rdi, 128(%rsp)
        movq    %rsi, 136(%rsp)
        movq    %rdx, 144(%rsp)
        movq    %rcx, 152(%rsp)
        movq    %r8, 160(%rsp)
        movq    %r9, 168(%rsp)
        movq    %rax, 176(%rsp)
        movq    %r10, 184(%rsp)
        movaps  %xmm0, 0(%rsp)
        movaps  %xmm1, 16(%rsp)
        movaps  %xmm2, 32(%rsp)
        movaps  %xmm3, 48(%rsp)
        movaps  %xmm4, 64(%rsp)
        movaps  %xmm5, 80(%rsp)
        movaps  %xmm6, 96(%rsp)
        movaps  %xmm7, 112(%rsp)
        movl    %r11d, %edi
        call    vramd_resolve_export
        movq    %rax, %r11
        movq    128(%rsp), %rdi
        movq    136(%rsp), %rsi
        movq    144(%rsp), %rdx
        movq    152(%rsp), %rcx
        movq    160(%rsp), %r8
        movq    168(%rsp), %r9
        movq    176(%rsp), %rax
        movq    184(%rsp), %r10
        movaps  0(%rsp), %xmm0
        movaps  16(%rsp), %xmm1
        movaps  32(%rsp), %xmm2
        movaps  48(%rsp), %xmm3
        movaps  64(%rsp), %xmm4
        movaps  80(%rsp), %xmm5
        movaps  96(%rsp), %xmm6
        movaps  112(%rsp), %xmm7
        leave
        .cfi_def_cfa %rsp, 8
        jmpq    *%r11
        .cfi_endproc
        .size   resolve_and_jump, .-resolve_and_jump

/* dlsym(handle, name) and dlvsym(handle, name, version): return the answer of `decide`, or go on in the function that it
   names by a jump, never a call: RTLD_NEXT is relative to the caller that the C library sees. The caller's address is the
   last argument of `decide`. */
        .macro LOOKUP name, decide, caller_register
        .balign 32, 0xcc
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), \caller_register
        call    \decide
        movq    %rdx, %r11              /* where to go on */
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jz      0f
        ret
0:      jmpq    *%r11
        .cfi_endproc
        .size   \name, .-\name
        .endm

        LOOKUP  dlsym, vramd_decide_dlsym, %rdx
        LOOKUP  dlvsym, vramd_decide_dlvsym, %rcx

        .section .note.GNU-stack, "", @progbits
