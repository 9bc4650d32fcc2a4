/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first, second, third, ... allocation or request that a verbs call makes
 * fails, until the call succeeds.  Whatever fails says why, leaves no memory,
 * descriptor or object behind, and works when it is tried again.
 *
 * malloc(), mmap() and syscall() of this program stand before those of libc;
 * they fail for the plugin and the preload library only.  alloc SFNIC: the
 * command that shows what is left.
 */
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "pair.h"

/* ---- calls that fail ------------------------------------------------ */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);

static struct range {
	uintptr_t start, end;
} ours[2];
static int known;     /* of them */
static int countdown; /* 0: nothing fails */
static bool fired;

static int note_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct range r = {UINTPTR_MAX, 0};
	int i;

	(void)size;
	(void)arg;
	if (!strstr(info->dlpi_name, "/libscalefabric") &&
	    !strstr(info->dlpi_name, "/libsfnic-preload"))
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		r.start = at < r.start ? at : r.start;
		r.end = at + p->p_memsz > r.end ? at + p->p_memsz : r.end;
	}
	CHECK(known < 2);
	ours[known++] = r;
	return 0;
}

/* Is it the turn of this call, made from @caller? */
static bool fails(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;
	int i;

	for (i = 0; countdown && i < known; i++)
		if (at >= ours[i].start && at < ours[i].end)
			break;
	if (!countdown || i == known || --countdown)
		return false;
	fired = true;
	return true;
}

#define EXPORT __attribute__((visibility("default"), noinline))
#define FAIL(err, value)                                  \
	do {                                              \
		if (fails(__builtin_return_address(0))) { \
			errno = err;                      \
			return value;                     \
		}                                         \
	} while (0)

EXPORT void *malloc(size_t size)
{
	FAIL(ENOMEM, NULL);
	return __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
	FAIL(ENOMEM, NULL);
	return __libc_calloc(n, size);
}

EXPORT void *realloc(void *old, size_t size)
{
	FAIL(ENOMEM, NULL);
	return __libc_realloc(old, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	FAIL(ENOMEM, NULL);
	return __libc_memalign(align, size);
}

EXPORT int posix_memalign(void **p, size_t align, size_t size)
{
	if (fails(__builtin_return_address(0)))
		return ENOMEM;
	*p = __libc_memalign(align, size);
	return *p ? 0 : ENOMEM;
}

static long kernel(long nr, const long a[6])
{
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (ret >= -4095 && ret < 0) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
}

EXPORT void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	const long a[6] = {(long)at, (long)len, prot, flags, fd, off};

	FAIL(ENOMEM, MAP_FAILED);
	return (void *)kernel(SYS_mmap, a);
}

/* What runs out, and with which error. */
static int may_fail(long nr)
{
	switch (nr) {
	case SYS_mprotect:
	case SYS_mremap:
	case SYS_fallocate:
		return ENOMEM;
	case SYS_openat:
	case SYS_pipe2:
	case SYS_socket:
	case SYS_socketpair:
	case SYS_userfaultfd:
		return EMFILE;
	case SYS_sendmsg:
		return ENOBUFS;
	}
	return 0;
}

EXPORT long syscall(long nr, ...)
{
	va_list args;
	long a[6];
	int i;

	va_start(args, nr);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (may_fail(nr))
		FAIL(may_fail(nr), -1);
	return kernel(nr, a);
}

/* ---- what is left --------------------------------------------------- */

static int open_files(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 1100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

struct left {
	size_t bytes;
	int files;
};

static struct left left(void)
{
	return (struct left){mallinfo2().uordblks, open_files()};
}

static bool objects_left(const char *sfnic)
{
	static const char *const kinds[] = {"\"pds\"", "\"mrs\"", "\"cqs\"",
					    "\"qps\""};
	char command[512], line[1024], *at;
	bool found = false;
	size_t i;
	FILE *f;

	snprintf(command, sizeof(command), "%s stat --json", sfnic);
	CHECK(f = popen(command, "r"));
	while (fgets(line, sizeof(line), f))
		for (i = 0; i < 4; i++) {
			at = strstr(line, kinds[i]);
			found |= at && at[7] != '0' && at[7] != '[';
		}
	CHECK(!pclose(f));
	return found;
}

/* ---- steps ---------------------------------------------------------- */

static struct ibv_device **list;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_qp *qp;
static struct end end;
static uint8_t *memory;
static int turn;

/* One call, whose @turn-th allocation fails: 0, or what it says. */
#define TRY(call)                              \
	({                                     \
		int try_ret_;                  \
                                               \
		fired = false;                 \
		errno = 0;                     \
		countdown = turn;              \
		try_ret_ = (call) ? 0 : errno; \
		countdown = 0;                 \
		try_ret_;                      \
	})
/* The same for a call that returns the error, which holds as well. */
#define TRY_INT(call)              \
	({                         \
		int int_ret_;      \
                                   \
		fired = false;     \
		countdown = turn;  \
		int_ret_ = (call); \
		countdown = 0;     \
		int_ret_;          \
	})

static int list_do(void)
{
	return TRY(list = ibv_get_device_list(NULL));
}

static void list_undo(void)
{
	ibv_free_device_list(list);
}

/* libibverbs looks for the device elsewhere, and tells how that ended. */
static int open_do(void)
{
	int err = TRY(ctx = ibv_open_device(list[0]));

	return err == ENOENT ? ENOMEM : err;
}

static void open_undo(void)
{
	CHECK(!ibv_close_device(ctx));
}

static int pd_do(void)
{
	return TRY(pd = ibv_alloc_pd(ctx));
}

static void pd_undo(void)
{
	CHECK(!ibv_dealloc_pd(pd));
}

static int mr_do(void)
{
	return TRY(mr = ibv_reg_mr(pd, memory, 65536, ALL_ACCESS));
}

static int mr_small_do(void)
{
	return TRY(mr = ibv_reg_mr(pd, memory + 100, 100, ALL_ACCESS));
}

static void mr_undo(void)
{
	CHECK(!ibv_dereg_mr(mr));
}

static int channel_do(void)
{
	return TRY(channel = ibv_create_comp_channel(ctx));
}

static void channel_undo(void)
{
	CHECK(!ibv_destroy_comp_channel(channel));
}

static int cq_do(void)
{
	return TRY(cq = ibv_create_cq(ctx, 100, NULL, channel, 0));
}

static void cq_undo(void)
{
	CHECK(!ibv_destroy_cq(cq));
}

static int cq_ex_do(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 100,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	return TRY(cq_ex = ibv_create_cq_ex(ctx, &attr));
}

static void cq_ex_undo(void)
{
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)));
}

static int qp_do(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {16, 16, 2, 2, 64},
		.qp_type = IBV_QPT_RC,
	};

	return TRY(qp = ibv_create_qp(pd, &init));
}

static int qp_ex_do(void)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {16, 16, 2, 2, 64},
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return TRY(qp = ibv_create_qp_ex(ctx, &init));
}

static void qp_undo(void)
{
	CHECK(!ibv_destroy_qp(qp));
}

static int modify_do(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	return TRY_INT(ibv_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					     IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS));
}

static void modify_undo(void)
{
	set_state(qp, IBV_QPS_RESET);
}

static int query_do(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return TRY_INT(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
}

static int resize_do(void)
{
	return TRY_INT(ibv_resize_cq(cq, 1000));
}

static void resize_undo(void)
{
	CHECK(!ibv_resize_cq(cq, 100));
}

static void nothing(void)
{
}

/* Nothing on the data path allocates: all of it works the first time. */
static int post_do(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, 4096, mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc[2];
	int n = 0;

	CHECK(!TRY_INT(ibv_post_recv(qp, &recv, &bad_recv)) && !fired);
	sge.addr += 8192;
	CHECK(!TRY_INT(ibv_post_send(qp, &wr, &bad)) && !fired);
	while (n < 2)
		n += TRY_INT(ibv_poll_cq(cq, 2 - n, wc + n));
	CHECK(!fired && !wc[0].status && !wc[1].status);
	CHECK(!TRY_INT(ibv_req_notify_cq(cq, 0)) && !fired);
	return 0;
}

/* Destroying: what could not go is there, and goes the next time. */
#define DESTROY(name, create, call)     \
	static int name(void)           \
	{                               \
		int saved = turn, err;  \
                                        \
		turn = 0;               \
		CHECK(!create());       \
		turn = saved;           \
		err = TRY_INT(call);    \
		turn = 0;               \
		if (err)                \
			CHECK(!(call)); \
		turn = saved;           \
		return err;             \
	}

DESTROY(pd_destroy, pd_do, ibv_dealloc_pd(pd))
DESTROY(mr_destroy, mr_do, ibv_dereg_mr(mr))
DESTROY(channel_destroy, channel_do, ibv_destroy_comp_channel(channel))
DESTROY(cq_destroy, cq_do, ibv_destroy_cq(cq))
DESTROY(qp_destroy, qp_do, ibv_destroy_qp(qp))
DESTROY(close_device, open_do, ibv_close_device(ctx))

/* With an event that nobody has read: else it would wait for ever. */
static int cq_event_destroy(void)
{
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	int saved = turn, err;

	turn = 0;
	CHECK(!cq_do() && !qp_do());
	connect_qp(&end, qp, qp->qp_num);
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(!ibv_post_recv(qp, &recv, &bad_recv));
	CHECK(!ibv_post_send(qp, &wr, &bad));
	qp_undo();
	turn = saved;
	err = TRY_INT(ibv_destroy_cq(cq));
	turn = 0;
	if (err)
		CHECK(!ibv_destroy_cq(cq));
	turn = saved;
	return err;
}

/* ---- the test ------------------------------------------------------- */

static bool proper(int err)
{
	return err == ENOMEM || err == EMFILE || err == EIO;
}

static void step(const char *name, int (*run)(void), void (*undo)(void),
		 bool stays)
{
	int failed = 0, err;
	struct left before, after;

	/* What is kept for good is made the first time. */
	turn = 0;
	CHECK(!run());
	undo();
	before = left();
	for (turn = 1;; turn++) {
		err = run();
		if (err && (!fired || !proper(err)))
			fprintf(stderr, "%s: %d: errno %d\n", name, turn, err);
		CHECK(!err || (fired && proper(err)));
		failed += err != 0;
		if (!fired)
			break;
		if (!err)
			undo();
		after = left();
		if (after.bytes != before.bytes || after.files != before.files)
			fprintf(stderr, "%s: %d: %zd bytes, %d files\n", name,
				turn, after.bytes - before.bytes,
				after.files - before.files);
		CHECK(after.bytes == before.bytes);
		CHECK(after.files == before.files);
	}
	printf("%-14s %d tries, %d failed\n", name, turn - 1, failed);
	if (!stays)
		undo();
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	alarm(30);
	setvbuf(stdout, NULL, _IONBF, 0);
	CHECK(!posix_memalign((void **)&memory, 4096, 65536));
	memset(memory, 1, 65536);
	end_open(&end); /* everything is loaded and connected */
	dl_iterate_phdr(note_module, NULL);
	CHECK(known == 2);
	step("list", list_do, list_undo, true);
	step("open", open_do, open_undo, true);
	step("pd", pd_do, pd_undo, true);
	step("mr", mr_do, mr_undo, false);
	step("small mr", mr_small_do, mr_undo, false);
	step("channel", channel_do, channel_undo, true);
	step("cq", cq_do, cq_undo, true);
	step("cq_ex", cq_ex_do, cq_ex_undo, false);
	step("qp_ex", qp_ex_do, qp_undo, false);
	step("qp", qp_do, qp_undo, true);
	step("modify", modify_do, modify_undo, false);
	step("query", query_do, nothing, false);
	step("resize", resize_do, resize_undo, false);
	step("mr", mr_do, mr_undo, true);
	connect_qp(&end, qp, qp->qp_num);
	step("post", post_do, nothing, false);
	set_state(qp, IBV_QPS_RESET);
	mr_undo();
	qp_undo();
	step("destroy qp", qp_destroy, nothing, false);
	cq_undo();
	step("destroy cq", cq_destroy, nothing, false);
	step("with an event", cq_event_destroy, nothing, false);
	channel_undo();
	channel = NULL;
	step("destroy channel", channel_destroy, nothing, false);
	channel = NULL;
	step("dereg", mr_destroy, nothing, false);
	pd_undo();
	step("dealloc", pd_destroy, nothing, false);
	open_undo();
	step("close", close_device, nothing, false);
	list_undo();
	end_close(&end);
	CHECK(!objects_left(argv[1]));
	puts("nothing is left");
	return 0;
}
