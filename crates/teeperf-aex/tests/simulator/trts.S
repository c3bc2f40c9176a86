// The way into the enclave and out of it. Behind each TCS a page with what is kept of its thread:
//  0 stack pointer of the OCALL that is open; 0: none   8, 16, 24 the host's RSP, RBP, and where it goes on
// 32 bytes of an SSA frame; set by who loads the enclave
// then the SSA frames. The stack ends where the TCS begins.
	.text
	.globl enclave_entry, ocall
	.type enclave_entry, @function
enclave_entry:
	test %eax, %eax
	jnz .Lexception
	lea 4096(%rbx), %r11
	mov %rsp, 8(%r11)
	mov %rbp, 16(%r11)
	mov %rcx, 24(%r11)
	cmp $-1, %rdi
	je .Lback
	mov (%r11), %r10
	mov %rbx, %rsp
	test %r10, %r10
	cmovnz %r10, %rsp
	and $-16, %rsp
	push %r10
	push %rbx
	xor %ebp, %ebp
	mov %rbx, %rdx
	call ecall
	pop %rbx
	lea 4096(%rbx), %r11
	pop (%r11)
	mov $-1, %rdi
	mov %rax, %rsi
.Lleave:
	mov 8(%r11), %rsp
	mov 16(%r11), %rbp
	mov 24(%r11), %rbx
	mov $4, %eax
	enclu
.Lback:	// An OCALL returns: with RSI.
	mov (%r11), %rsp
	pop (%r11)
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	mov %rsi, %rax
	ret
.Lexception:
	mov %rsp, %r13
	mov %rbp, %r14
	mov %rcx, %r12
	mov 4096+32(%rbx), %r10
	imul %rax, %r10
	lea 8192-184(%rbx, %r10), %rdi
	mov 32(%rdi), %rsp
	sub $128, %rsp
	and $-16, %rsp
	xor %ebp, %ebp
	call handle_exception
	mov %rax, %rsi
	mov $-1, %rdi
	mov %r13, %rsp
	mov %r14, %rbp
	mov %r12, %rbx
	mov $4, %eax
	enclu
	.size enclave_entry, .-enclave_entry

// long ocall(index, argument, tcs)
	.type ocall, @function
ocall:
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	lea 4096(%rdx), %r11
	push (%r11)
	mov %rsp, (%r11)
	jmp .Lleave
	.size ocall, .-ocall
	.section .note.GNU-stack,"",@progbits
