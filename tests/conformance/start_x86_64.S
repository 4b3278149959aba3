// Entry of the program. The start file of a new libc asks for __libc_start_main@GLIBC_2.34, which Debian 11's does not have;
// the old form is in every libc of x86-64.
        .symver __libc_start_main, __libc_start_main@GLIBC_2.2.5
        .text
        .globl  _start
        .type   _start, @function
_start:
        xorl    %ebp, %ebp
        movq    %rdx, %r9               // the loader's function for exit
        popq    %rsi                    // argc
        movq    %rsp, %rdx              // argv
        andq    $-16, %rsp
        pushq   %rax
        pushq   %rsp                    // end of the stack
        xorl    %r8d, %r8d              // no fini
        xorl    %ecx, %ecx              // no init: nothing here has a constructor
        leaq    main(%rip), %rdi
        call    *__libc_start_main@GOTPCREL(%rip)
        hlt
        .size   _start, .-_start
        .section .note.GNU-stack, "", @progbits
