// long urts_enter(tcs, index, argument, out[2], is_apart): one entry, until the enclave exits; `out` is what it exits with.
// As in Linux's vDSO one ENCLU enters and, after an interrupt, resumes; or, as in Intel's runtime, another resumes.
	.text
	.globl urts_enter, urts_resumes, urts_resumes_apart
	.hidden urts_enter, urts_resumes, urts_resumes_apart
	.type urts_enter, @function
urts_enter:
	push %rbp
	mov %rsp, %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	push %rcx
	mov %rdi, %rbx
	mov %rsi, %rdi
	mov %rdx, %rsi
	lea urts_resumes(%rip), %rcx
	test %r8d, %r8d
	jz 1f
	lea urts_resumes_apart(%rip), %rcx
1:	mov $2, %eax
urts_resumes:
	enclu
	pop %rcx
	mov %rdi, (%rcx)
	mov %rsi, 8(%rcx)
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret
	.size urts_enter, .-urts_enter

	.type urts_resumes_apart, @function
urts_resumes_apart:
	enclu
	ud2
	.size urts_resumes_apart, .-urts_resumes_apart
	.section .note.GNU-stack,"",@progbits
