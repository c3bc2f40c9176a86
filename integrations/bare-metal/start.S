# The first instructions of the image, in machine mode: a stack, floating point, traps, zeroes where C expects
# them; then main(), and the end.
	.section .text.start, "ax"
	.globl _start
_start:
	csrr	t0, mhartid
	bnez	t0, sleep
	.option push
	.option norelax
	la	gp, __global_pointer$
	.option pop
	la	sp, stack_end
	# mstatus.FS: floating-point registers may be used, as the compiler does for lp64d.
	li	t0, 0x2000
	csrs	mstatus, t0
	la	t0, on_trap
	csrw	mtvec, t0
	la	t0, bss_begin
	la	t1, bss_end
clear:
	bgeu	t0, t1, cleared
	sd	zero, 0(t0)
	addi	t0, t0, 8
	j	clear
cleared:
	call	main
	call	board_off
sleep:
	wfi
	j	sleep
