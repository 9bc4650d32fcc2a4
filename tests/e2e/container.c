/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What tests of strange places need.
 *
 * container pair: two processes, 64 KiB by RDMA WRITE and back by RDMA READ,
 *	every byte checked; no network is needed.
 * container bare SECONDS: the same some time after the program has cleared its
 *	environment.
 * container PROFILE PROGRAM ARGS...: runs PROGRAM under a seccomp filter.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "rc.h"

/* ---- two processes -------------------------------------------------- */

#define SIZE 65536
#define ROUNDS 20
#define SOON_MS 20000

static struct rc rc;
static uint8_t *buf;

/* Both have done all that came before. */
static struct rc_address exchange(int sock)
{
	struct rc_address own = rc_address(&rc), peer;

	CHECK(write(sock, &own, sizeof(own)) == sizeof(own));
	CHECK(recv(sock, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	return peer;
}

static void set_up(int sock)
{
	struct rc_address peer;

	alarm(60);
	CHECK(!posix_memalign((void **)&buf, 4096, 2 * SIZE));
	memset(buf, 0, 2 * SIZE);
	rc_open(&rc, 0);
	rc_create(&rc, buf, 2 * SIZE);
	peer = exchange(sock);
	rc_connect(&rc, &peer);
	CHECK(!rc_recv(&rc, SIZE, 8));
	CHECK(!ibv_req_notify_cq(rc.cq, 0));
	exchange(sock);
}

static uint8_t byte(int round, size_t at)
{
	return (uint8_t)((size_t)round * 37 + at * 7 + (at >> 8));
}

/* Writes to the first half of the peer's, reads it back to the second here. */
static void active(void)
{
	struct ibv_sge sge = {(uintptr_t)buf + SIZE, SIZE, rc.mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {rc.peer.addr, rc.peer.rkey},
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int round;
	size_t i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < SIZE; i++)
			buf[i] = byte(round, i);
		CHECK(!rc_post(&rc, IBV_WR_RDMA_WRITE, 0, SIZE));
		CHECK(rc_wait(&rc, &wc, SOON_MS) == IBV_WC_SUCCESS);
		CHECK(!ibv_post_send(rc.qp, &wr, &bad));
		CHECK(rc_wait(&rc, &wc, SOON_MS) == IBV_WC_SUCCESS);
		CHECK(!memcmp(buf, buf + SIZE, SIZE));
	}
	CHECK(!rc_post(&rc, IBV_WR_SEND, 0, 8));
	CHECK(rc_wait(&rc, &wc, SOON_MS) == IBV_WC_SUCCESS);
}

/* Sleeps until the last message is there, then looks at what has come. */
static void passive(void)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;
	size_t i;

	CHECK(!ibv_get_cq_event(rc.channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	CHECK(rc_wait(&rc, &wc, SOON_MS) == IBV_WC_SUCCESS);
	for (i = 0; i < SIZE; i++)
		CHECK(buf[i] == byte(ROUNDS - 1, i));
}

/* Not in the place of a closed stdout. */
static void move_high(int *fd)
{
	int high = fcntl(*fd, F_DUPFD, 10);

	CHECK(high >= 10);
	close(*fd);
	*fd = high;
}

static int pair(void)
{
	int sock[2], status;
	pid_t child;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	move_high(&sock[0]);
	move_high(&sock[1]);
	child = fork();
	CHECK(child >= 0);
	close(sock[!child]);
	set_up(sock[!!child]);
	if (child)
		active();
	else
		passive();
	exchange(sock[!!child]);
	rc_destroy(&rc);
	rc_close(&rc);
	if (!child)
		_exit(0);
	CHECK(waitpid(child, &status, 0) == child && !status);
	puts("data ok");
	return 0;
}

/* libibverbs needs one variable, where the plugin is not installed. */
static int bare(const char *pause)
{
	char *drivers = getenv("IBV_DRIVERS");

	drivers = drivers ? strdup(drivers) : NULL;
	clearenv();
	if (drivers)
		setenv("IBV_DRIVERS", drivers, 1);
	sleep((unsigned int)atoi(pause));
	return pair();
}

/* ---- system calls that are refused ---------------------------------- */

/* Docker refuses all that it does not name; these are the ones in question. */
static const int docker[] = {
	SYS_acct,
	SYS_add_key,
	SYS_bpf,
	SYS_clock_adjtime,
	SYS_clock_settime,
	SYS_create_module,
	SYS_delete_module,
	SYS_finit_module,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fsopen,
	SYS_fspick,
	SYS_get_kernel_syms,
	SYS_get_mempolicy,
	SYS_init_module,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_io_uring_setup,
	SYS_ioperm,
	SYS_iopl,
	SYS_kcmp,
	SYS_kexec_file_load,
	SYS_kexec_load,
	SYS_keyctl,
	SYS_lookup_dcookie,
	SYS_mbind,
	SYS_migrate_pages,
	SYS_mount,
	SYS_mount_setattr,
	SYS_move_mount,
	SYS_move_pages,
	SYS_name_to_handle_at,
	SYS_nfsservctl,
	SYS_open_by_handle_at,
	SYS_open_tree,
	SYS_perf_event_open,
	SYS_pivot_root,
	SYS_process_madvise,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_ptrace,
	SYS_query_module,
	SYS_quotactl,
	SYS_reboot,
	SYS_request_key,
	SYS_set_mempolicy,
	SYS_setns,
	SYS_settimeofday,
	SYS_swapoff,
	SYS_swapon,
	SYS_sysfs,
	SYS__sysctl,
	SYS_umount2,
	SYS_unshare,
	SYS_uselib,
	SYS_userfaultfd,
	SYS_ustat,
	SYS_vhangup,
};

/* What an older one does not know, it refuses, too. */
static const int new_calls[] = {
	SYS_close_range,
	SYS_openat2,
	SYS_pidfd_getfd,
	SYS_rseq,
};

static const int trace[] = {
	SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
	SYS_kcmp,   SYS_pidfd_getfd,
};

#define CLONE_NEW_ANY                                                  \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | \
	 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define DATA(member) ((uint32_t)offsetof(struct seccomp_data, member))
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static struct sock_filter filter[256];
static unsigned short filters;

static void add(uint16_t code, uint8_t t, uint8_t f, uint32_t k)
{
	filter[filters++] = (struct sock_filter){code, t, f, k};
}

static void answer(uint32_t err)
{
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | err);
}

static void refuse(const int *calls, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)calls[i]);
		answer(EPERM);
	}
}

static void refuse_namespaces(void)
{
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_clone3);
	answer(ENOSYS);
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_clone);
	add(BPF_LD | BPF_W | BPF_ABS, 0, 0, DATA(args[0]));
	add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, CLONE_NEW_ANY);
	answer(EPERM);
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

static void build(const char *profile)
{
	add(BPF_LD | BPF_W | BPF_ABS, 0, 0, DATA(nr));
	if (!strcmp(profile, "trace")) {
		refuse(trace, COUNT(trace));
	} else {
		CHECK(!strcmp(profile, "docker") ||
		      !strcmp(profile, "docker-old"));
		refuse(docker, COUNT(docker));
		if (!strcmp(profile, "docker-old"))
			refuse(new_calls, COUNT(new_calls));
		refuse_namespaces();
	}
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	CHECK(filters <= COUNT(filter));
}

static int run(const char *profile, char **argv)
{
	struct sock_fprog program = {.filter = filter};

	build(profile);
	program.len = filters;
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	execvp(argv[0], argv);
	CHECK(!"exec");
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "pair"))
		return pair();
	if (argc == 3 && !strcmp(argv[1], "bare"))
		return bare(argv[2]);
	CHECK(argc > 2);
	return run(argv[1], argv + 2);
}
