/* The start of the carried programs. The C library's own start file would bind to a version of __libc_start_main newer than
   GLIBC_2.31 on the machine that builds; the older version of the same function is still there on every glibc. */
        .text
        .symver old_start_main, __libc_start_main@GLIBC_2.2.5
        .globl  _start
        .type   _start, @function
_start:
        .cfi_startproc
        .cfi_undefined rip
        xorl    %ebp, %ebp
        movq    %rdx, %r9               /* what the loader wants called at exit */
        popq    %rsi                    /* argc */
        movq    %rsp, %rdx              /* argv */
        andq    $-16, %rsp
        pushq   %rax
        pushq   %rsp
        xorl    %r8d, %r8d
        leaq    run_constructors(%rip), %rcx
        leaq    main(%rip), %rdi
        call    *old_start_main@GOTPCREL(%rip)
        hlt
        .cfi_endproc
        .size   _start, .-_start

/* (argc, argv, environ): what glibc before 2.34 expects of a program's start file. */
        .type   run_constructors, @function
run_constructors:
        .cfi_startproc
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        movq    %rdi, %r12
        movq    %rsi, %r13
        movq    %rdx, %r14
        leaq    __init_array_start(%rip), %rbx
        leaq    __init_array_end(%rip), %r15
0:      cmpq    %r15, %rbx
        jae     1f
        movl    %r12d, %edi
        movq    %r13, %rsi
        movq    %r14, %rdx
        call    *(%rbx)
        addq    $8, %rbx
        jmp     0b
1:      popq    %r15
        .cfi_adjust_cfa_offset -8
        popq    %r14
        .cfi_adjust_cfa_offset -8
        popq    %r13
        .cfi_adjust_cfa_offset -8
        popq    %r12
        .cfi_adjust_cfa_offset -8
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   run_constructors, .-run_constructors

        .data
        .globl  __dso_handle
        .hidden __dso_handle
__dso_handle:
        .quad   0
        .section .note.GNU-stack, "", @progbits
