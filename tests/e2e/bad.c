/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bad things get: two processes, an RC connection, one mistake a case.
 * Each case says which completion status both sides see, that both QPs are in
 * ERR, that the responder's memory is untouched and which asynchronous event
 * its owner gets; then the same QPs are reset, connected and used again.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE 16384 /* of each buffer */
#define ANY (-1) /* as a wanted status: not asked */
#define NONE (-2) /* as a wanted status: no completion */

static const char *who = "requester";

#define CHECK(x)                                                               \
	do {                                                                   \
		if (!(x)) {                                                    \
			fprintf(stderr, "%s: %s:%d: %s failed (errno %d)\n",   \
				who, __FILE__, __LINE__, #x, errno);           \
			exit(1);                                               \
		}                                                              \
	} while (0)

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *buf, *gone;
	struct ibv_mr *mr; /* all rights */
	struct ibv_mr *plain; /* of the same memory: local read only */
	struct ibv_mr *foreign; /* in the other PD */
	struct ibv_mr *unmapped; /* memory that was unmapped afterwards */
	uint32_t stale; /* key of a region that was deregistered */
	int gid_index;
};

/* What a side must know of the other. */
struct address {
	uint32_t qpn;
	uint16_t lid;
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey, rkey_plain, rkey_foreign, rkey_stale;
};

static void open_side(struct side *s, int gid_index)
{
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_mr *mr;

	CHECK(list && list[0]);
	CHECK(s->ctx = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	CHECK(s->pd = ibv_alloc_pd(s->ctx));
	CHECK(s->other_pd = ibv_alloc_pd(s->ctx));
	CHECK(s->cq = ibv_create_cq(s->ctx, 64, NULL, NULL, 0));
	s->buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->gone = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s->buf != MAP_FAILED && s->gone != MAP_FAILED);
	CHECK(s->mr = ibv_reg_mr(s->pd, s->buf, SIZE, all));
	CHECK(s->plain = ibv_reg_mr(s->pd, s->buf, SIZE, 0));
	CHECK(s->foreign = ibv_reg_mr(s->other_pd, s->buf, SIZE, all));
	CHECK(s->unmapped = ibv_reg_mr(s->pd, s->gone, SIZE, all));
	CHECK(mr = ibv_reg_mr(s->pd, s->buf, SIZE, all));
	s->stale = mr->lkey;
	CHECK(!ibv_dereg_mr(mr));
	s->gid_index = gid_index;
}

static void create_qp(struct side *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = {16, 16, 2, 2, 64},
		.qp_type = IBV_QPT_RC,
	};

	CHECK(s->qp = ibv_create_qp(s->pd, &init));
}

static void close_side(struct side *s)
{
	CHECK(!ibv_destroy_qp(s->qp));
	CHECK(!ibv_destroy_cq(s->cq));
	CHECK(ibv_dealloc_pd(s->pd) == EBUSY);
	CHECK(!ibv_dereg_mr(s->mr));
	CHECK(!ibv_dereg_mr(s->plain));
	CHECK(!ibv_dereg_mr(s->foreign));
	CHECK(!ibv_dereg_mr(s->unmapped));
	CHECK(!ibv_dealloc_pd(s->pd));
	CHECK(!ibv_dealloc_pd(s->other_pd));
	CHECK(!ibv_close_device(s->ctx));
}

static struct address address(struct side *s)
{
	struct ibv_port_attr port;
	struct address a = {
		.qpn = s->qp->qp_num,
		.addr = (uintptr_t)s->buf,
		.rkey = s->mr->rkey,
		.rkey_plain = s->plain->rkey,
		.rkey_foreign = s->foreign->rkey,
		.rkey_stale = s->stale,
	};

	CHECK(!ibv_query_port(s->ctx, 1, &port));
	a.lid = port.lid;
	if (s->gid_index >= 0)
		CHECK(!ibv_query_gid(s->ctx, 1, s->gid_index, &a.gid));
	return a;
}

static int to_init(struct side *s)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	return ibv_modify_qp(s->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS);
}

static int to_rts(struct side *s, const struct address *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = 0xfffffe, /* wraps at once */
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.dlid = peer->lid, .port_num = 1},
	};
	int err;

	if (s->gid_index >= 0) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = peer->gid;
		attr.ah_attr.grh.sgid_index = s->gid_index;
		attr.ah_attr.grh.hop_limit = 1;
	}
	err = ibv_modify_qp(s->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0xfffffe;
	attr.timeout = 8; /* 1 ms */
	attr.retry_cnt = 2;
	attr.rnr_retry = 2;
	attr.max_rd_atomic = 4;
	return ibv_modify_qp(s->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

static void reset(struct side *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_wc wc;

	CHECK(!ibv_modify_qp(s->qp, &attr, IBV_QP_STATE));
	while (ibv_poll_cq(s->cq, 1, &wc) > 0)
		;
}

static int state(struct side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* The next completion within a second, or NONE. */
static int wait_wc(struct side *s, struct ibv_wc *wc)
{
	int i;

	for (i = 0; i < 10000; i++) {
		int n = ibv_poll_cq(s->cq, 1, wc);

		CHECK(n >= 0);
		if (n)
			return wc->status;
		usleep(100);
	}
	return NONE;
}

static int wait_state(struct side *s, int wanted)
{
	int i;

	for (i = 0; i < 10000 && state(s) != wanted; i++)
		usleep(100);
	return state(s);
}

/* ---- responder ------------------------------------------------------ */

enum recv_kind { RECV_NONE, RECV_GOOD, RECV_SHORT, RECV_BAD_KEY, RECV_STALE };

/* Parent to child before a case, child to parent after it. */
struct order {
	int recv;
	int want_err; /* wait until the QP is in ERR */
	int quit;
};

struct report {
	int status; /* of the receive */
	int state;
	int event; /* asynchronous event type, or NONE */
	int touched; /* bytes of the buffer that changed */
};

static void post_recv(struct side *s, int kind)
{
	struct ibv_sge sge = {(uintptr_t)s->buf + SIZE / 2, 4096, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	if (kind == RECV_NONE)
		return;
	if (kind == RECV_SHORT)
		sge.length = 8;
	if (kind == RECV_BAD_KEY)
		sge.lkey ^= 0x5500;
	if (kind == RECV_STALE)
		sge.lkey = s->stale;
	CHECK(!ibv_post_recv(s->qp, &wr, &bad));
}

static int async_event(struct side *s)
{
	struct pollfd p = {s->ctx->async_fd, POLLIN, 0};
	struct ibv_async_event event;
	int type;

	if (poll(&p, 1, 0) <= 0)
		return NONE;
	CHECK(!ibv_get_async_event(s->ctx, &event));
	type = event.event_type;
	ibv_ack_async_event(&event);
	return type;
}

static void xfer(int fd, void *out, size_t out_len, void *in, size_t in_len)
{
	CHECK(write(fd, out, out_len) == (ssize_t)out_len);
	CHECK(recv(fd, in, in_len, MSG_WAITALL) == (ssize_t)in_len);
}

static void responder(int fd, int gid_index)
{
	struct side s = {0};
	struct address own, peer;
	struct order o;
	uint8_t pattern[SIZE];

	who = "responder";
	open_side(&s, gid_index);
	create_qp(&s);
	own = address(&s);
	xfer(fd, &own, sizeof(own), &peer, sizeof(peer));
	for (;;) {
		struct report r = {NONE, 0, NONE, 0};
		struct ibv_wc wc;
		char byte = 0;
		int i;

		memset(s.buf, 0xa5, SIZE);
		memcpy(pattern, s.buf, SIZE);
		CHECK(recv(fd, &o, sizeof(o), MSG_WAITALL) == sizeof(o));
		if (o.quit)
			break;
		reset(&s);
		CHECK(!to_init(&s));
		post_recv(&s, o.recv);
		CHECK(!to_rts(&s, &peer));
		xfer(fd, &byte, 1, &byte, 1); /* ready; done */
		if (o.want_err)
			wait_state(&s, IBV_QPS_ERR);
		if (o.recv != RECV_NONE) {
			r.status = o.want_err ? wait_wc(&s, &wc) : ANY;
			while (!o.want_err && ibv_poll_cq(s.cq, 1, &wc) > 0)
				r.status = wc.status;
		}
		r.state = state(&s);
		r.event = async_event(&s);
		for (i = 0; i < SIZE; i++)
			r.touched += s.buf[i] != pattern[i];
		CHECK(write(fd, &r, sizeof(r)) == sizeof(r));
	}
	close_side(&s);
}

/* ---- requester ------------------------------------------------------ */

enum fault {
	GOOD,
	LKEY_WRONG,
	LKEY_FOREIGN,
	LKEY_STALE,
	LKEY_PLAIN,
	LOCAL_BOUNDS,
	LOCAL_WRAP,
	LOCAL_UNMAPPED,
	RKEY_WRONG,
	RKEY_FOREIGN,
	RKEY_STALE,
	RKEY_PLAIN,
	REMOTE_BOUNDS,
	REMOTE_BELOW,
	REMOTE_UNALIGNED,
	NO_PEER,
};

static const struct test {
	const char *name;
	int opcode;
	uint32_t length;
	int fault;
	int recv;
	int sent; /* wanted status of the send */
	int received;
	int peer_err; /* the responder's QP goes to ERR */
	int event;
} tests[] = {
#define LOCAL(name, op, fault)                                                 \
	{name, op, 64, fault, RECV_GOOD, IBV_WC_LOC_PROT_ERR, NONE, 0, NONE}
#define REMOTE(name, op, fault)                                                \
	{name, op, op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 64, fault,          \
	 RECV_NONE, IBV_WC_REM_ACCESS_ERR, NONE, 1, IBV_EVENT_QP_ACCESS_ERR}
	LOCAL("send, wrong lkey", IBV_WR_SEND, LKEY_WRONG),
	LOCAL("send, lkey of another PD", IBV_WR_SEND, LKEY_FOREIGN),
	LOCAL("send, lkey of a deregistered region", IBV_WR_SEND, LKEY_STALE),
	LOCAL("send, beyond the region", IBV_WR_SEND, LOCAL_BOUNDS),
	LOCAL("send, address wraps", IBV_WR_SEND, LOCAL_WRAP),
	LOCAL("write, wrong lkey", IBV_WR_RDMA_WRITE, LKEY_WRONG),
	LOCAL("read into memory without local write", IBV_WR_RDMA_READ,
	      LKEY_PLAIN),
	REMOTE("write, wrong rkey", IBV_WR_RDMA_WRITE, RKEY_WRONG),
	REMOTE("write, rkey of another PD", IBV_WR_RDMA_WRITE, RKEY_FOREIGN),
	REMOTE("write, rkey of a deregistered region", IBV_WR_RDMA_WRITE,
	       RKEY_STALE),
	REMOTE("write, no remote write", IBV_WR_RDMA_WRITE, RKEY_PLAIN),
	REMOTE("write, beyond the region", IBV_WR_RDMA_WRITE, REMOTE_BOUNDS),
	REMOTE("write, below the region", IBV_WR_RDMA_WRITE, REMOTE_BELOW),
	REMOTE("read, wrong rkey", IBV_WR_RDMA_READ, RKEY_WRONG),
	REMOTE("read, no remote read", IBV_WR_RDMA_READ, RKEY_PLAIN),
	REMOTE("read, beyond the region", IBV_WR_RDMA_READ, REMOTE_BOUNDS),
	REMOTE("atomic, wrong rkey", IBV_WR_ATOMIC_FETCH_AND_ADD, RKEY_WRONG),
	REMOTE("atomic, no remote atomic", IBV_WR_ATOMIC_FETCH_AND_ADD,
	       RKEY_PLAIN),
	{"atomic, not aligned", IBV_WR_ATOMIC_FETCH_AND_ADD, 8,
	 REMOTE_UNALIGNED, RECV_NONE, IBV_WC_REM_INV_REQ_ERR, NONE, 1,
	 IBV_EVENT_QP_REQ_ERR},
	{"send, receive too short", IBV_WR_SEND, 64, GOOD, RECV_SHORT,
	 IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, 1, NONE},
	{"send, receive with wrong lkey", IBV_WR_SEND, 64, GOOD, RECV_BAD_KEY,
	 IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, 1, NONE},
	{"small send, receive with stale lkey", IBV_WR_SEND, 4, GOOD,
	 RECV_STALE, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, 1, NONE},
	{"send, no receive", IBV_WR_SEND, 64, GOOD, RECV_NONE,
	 IBV_WC_RNR_RETRY_EXC_ERR, NONE, 0, NONE},
	{"send, nobody there", IBV_WR_SEND, 64, NO_PEER, RECV_NONE,
	 IBV_WC_RETRY_EXC_ERR, NONE, 0, NONE},
};

static void build(const struct side *s, const struct address *peer,
		  const struct test *t, struct ibv_send_wr *wr,
		  struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){(uintptr_t)s->buf, t->length, s->mr->lkey};
	*wr = (struct ibv_send_wr){
		.wr_id = 5,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = t->opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	wr->wr.rdma.remote_addr = peer->addr;
	wr->wr.rdma.rkey = peer->rkey;
	switch (t->fault) {
	case LKEY_WRONG:
		sge->lkey ^= 0x5500;
		break;
	case LKEY_FOREIGN:
		sge->lkey = s->foreign->lkey;
		break;
	case LKEY_STALE:
		sge->lkey = s->stale;
		break;
	case LKEY_PLAIN:
		sge->lkey = s->plain->lkey;
		break;
	case LOCAL_BOUNDS:
		sge->addr += SIZE - 8;
		break;
	case LOCAL_WRAP:
		sge->addr = UINT64_MAX - 3;
		break;
	case LOCAL_UNMAPPED:
		sge->addr = (uintptr_t)s->gone;
		sge->lkey = s->unmapped->lkey;
		break;
	case RKEY_WRONG:
		wr->wr.rdma.rkey ^= 0x5500;
		break;
	case RKEY_FOREIGN:
		wr->wr.rdma.rkey = peer->rkey_foreign;
		break;
	case RKEY_STALE:
		wr->wr.rdma.rkey = peer->rkey_stale;
		break;
	case RKEY_PLAIN:
		wr->wr.rdma.rkey = peer->rkey_plain;
		break;
	case REMOTE_BOUNDS:
		wr->wr.rdma.remote_addr += SIZE - t->length + 1;
		break;
	case REMOTE_BELOW:
		wr->wr.rdma.remote_addr -= 1;
		break;
	case REMOTE_UNALIGNED:
		wr->wr.rdma.remote_addr += 4;
		break;
	}
	if (t->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		uint64_t addr = wr->wr.rdma.remote_addr;
		uint32_t rkey = wr->wr.rdma.rkey;

		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = 1;
	}
}

static int failures;

static void expect(const char *test, const char *what, int got, int wanted)
{
	if (wanted == ANY || got == wanted)
		return;
	fprintf(stderr, "FAILED  %s: %s is %d, wanted %d\n", test, what, got,
		wanted);
	failures++;
}

static void connect_again(struct side *s, const struct address *peer, int fd,
			  const struct order *o, bool nobody)
{
	struct address wrong = *peer;
	char byte = 0;

	reset(s);
	CHECK(!to_init(s));
	wrong.qpn = (peer->qpn + 5) & 0xffffff;
	CHECK(!to_rts(s, nobody ? &wrong : peer));
	CHECK(write(fd, o, sizeof(*o)) == sizeof(*o));
	CHECK(recv(fd, &byte, 1, MSG_WAITALL) == 1);
}

/* What is behind the bad one is flushed, also what is posted now. */
static void check_flush(struct side *s, const char *name,
			struct ibv_send_wr *wr)
{
	struct ibv_send_wr late = *wr, *bad;
	struct ibv_wc wc;

	late.wr_id = 7;
	expect(name, "status of the next", wait_wc(s, &wc),
	       IBV_WC_WR_FLUSH_ERR);
	expect(name, "wr_id of the next", (int)wc.wr_id, 6);
	expect(name, "state", state(s), IBV_QPS_ERR);
	expect(name, "post in ERR", ibv_post_send(s->qp, &late, &bad), 0);
	expect(name, "status of a late one", wait_wc(s, &wc),
	       IBV_WC_WR_FLUSH_ERR);
	expect(name, "wr_id of a late one", (int)wc.wr_id, 7);
}

static void run(struct side *s, const struct address *peer, int fd,
		const struct test *t)
{
	struct order o = {.recv = t->recv, .want_err = t->peer_err};
	struct ibv_send_wr wr, next, *bad;
	struct ibv_sge sge;
	struct report r;
	struct ibv_wc wc = {0};
	char byte = 0;

	connect_again(s, peer, fd, &o, t->fault == NO_PEER);
	build(s, peer, t, &wr, &sge);
	next = wr;
	next.wr_id = 6;
	next.send_flags = 0; /* flushed ones complete all the same */
	wr.next = &next;
	expect(t->name, "post", ibv_post_send(s->qp, &wr, &bad), 0);
	expect(t->name, "status", wait_wc(s, &wc), t->sent);
	expect(t->name, "wr_id", (int)wc.wr_id, 5);
	wr.next = NULL;
	check_flush(s, t->name, &wr);
	xfer(fd, &byte, 1, &r, sizeof(r));
	expect(t->name, "receive's status", r.status,
	       t->received == NONE && t->recv != RECV_NONE ? ANY : t->received);
	expect(t->name, "responder's state", r.state,
	       t->peer_err ? IBV_QPS_ERR : IBV_QPS_RTS);
	expect(t->name, "event", r.event, t->event);
	expect(t->name, "bytes touched", r.touched, 0);
}

/* The same QPs, used as they should be. */
static void run_good(struct side *s, const struct address *peer, int fd)
{
	static const struct test good = {"good", IBV_WR_RDMA_WRITE, 64, GOOD,
					 RECV_GOOD, 0, 0, 0, NONE};
	struct order o = {.recv = RECV_GOOD};
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct report r;
	struct ibv_wc wc;
	char byte = 0;

	memset(s->buf, 0x11, SIZE);
	connect_again(s, peer, fd, &o, false);
	build(s, peer, &good, &wr, &sge);
	CHECK(!ibv_post_send(s->qp, &wr, &bad));
	expect("good", "write's status", wait_wc(s, &wc), IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_SEND;
	CHECK(!ibv_post_send(s->qp, &wr, &bad));
	expect("good", "send's status", wait_wc(s, &wc), IBV_WC_SUCCESS);
	xfer(fd, &byte, 1, &r, sizeof(r));
	expect("good", "receive's status", r.status, IBV_WC_SUCCESS);
	expect("good", "bytes touched", r.touched, 128);
}

/*
 * Memory that was unmapped while registered: as if pinned where the pages are
 * shared, else a local protection error; never a signal.
 */
static void run_unmapped(struct side *s, const struct address *peer, int fd)
{
	static const struct test t = {"unmapped", IBV_WR_RDMA_WRITE, 4096,
				      LOCAL_UNMAPPED, RECV_NONE, 0, 0, 0,
				      NONE};
	struct order o = {.recv = RECV_NONE};
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct report r;
	struct ibv_wc wc;
	char byte = 0;
	int status;

	CHECK(!munmap(s->gone, SIZE));
	connect_again(s, peer, fd, &o, false);
	build(s, peer, &t, &wr, &sge);
	CHECK(!ibv_post_send(s->qp, &wr, &bad));
	status = wait_wc(s, &wc);
	if (status != IBV_WC_SUCCESS)
		expect(t.name, "status", status, IBV_WC_LOC_PROT_ERR);
	xfer(fd, &byte, 1, &r, sizeof(r));
	expect(t.name, "bytes touched", r.touched,
	       status == IBV_WC_SUCCESS ? 4096 : 0);
	expect(t.name, "event", r.event, NONE);
}

static void bad_calls(struct side *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = {1 << 20, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	int rw = IBV_ACCESS_LOCAL_WRITE;

	expect("bad call", "RESET to RTS",
	       ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), EINVAL);
	errno = 0;
	CHECK(!ibv_create_qp(s->pd, &init));
	expect("bad call", "errno of a queue too deep", errno, EINVAL);
	init.cap.max_send_wr = 1;
	init.qp_type = IBV_QPT_DRIVER;
	errno = 0;
	CHECK(!ibv_create_qp(s->pd, &init));
	expect("bad call", "errno of an unknown type", errno, EOPNOTSUPP);
	errno = 0;
	CHECK(!ibv_create_cq(s->ctx, 0, NULL, NULL, 0));
	expect("bad call", "errno of an empty CQ", errno, EINVAL);
	errno = 0;
	CHECK(!ibv_reg_mr(s->pd, (void *)4096, 4096, rw));
	expect("bad call", "errno of unmapped memory", errno, EFAULT);
	errno = 0;
	CHECK(!ibv_reg_mr(s->pd, s->buf, SIZE, IBV_ACCESS_REMOTE_WRITE));
	expect("bad call", "errno of remote without local write", errno,
	       EINVAL);
	expect("bad call", "dealloc of a PD in use", ibv_dealloc_pd(s->pd),
	       EBUSY);
	expect("bad call", "destroy of a CQ in use", ibv_destroy_cq(s->cq),
	       EBUSY);
}

/* Until no more: the errno says so, and all can be given back. */
static void exhaust(struct side *s, int limit)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp **qps = calloc(limit + 1, sizeof(*qps));
	int n;

	CHECK(qps);
	for (n = 0; n <= limit; n++) {
		errno = 0;
		qps[n] = ibv_create_qp(s->pd, &init);
		if (!qps[n])
			break;
	}
	expect("exhaust", "errno of one QP too many", errno, ENOMEM);
	CHECK(n < limit);
	while (n--)
		CHECK(!ibv_destroy_qp(qps[n]));
	free(qps);
}

static void requester(int fd, int gid_index, bool all)
{
	struct ibv_device_attr attr;
	struct address own, peer;
	struct order quit = {.quit = 1};
	struct side s = {0};
	size_t i;

	open_side(&s, gid_index);
	create_qp(&s);
	own = address(&s);
	xfer(fd, &own, sizeof(own), &peer, sizeof(peer));
	bad_calls(&s);
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		run(&s, &peer, fd, &tests[i]);
		run_good(&s, &peer, fd);
	}
	run_unmapped(&s, &peer, fd);
	run_good(&s, &peer, fd);
	CHECK(!ibv_query_device(s.ctx, &attr));
	if (all)
		exhaust(&s, attr.max_qp);
	CHECK(write(fd, &quit, sizeof(quit)) == sizeof(quit));
	close_side(&s);
	printf("%zu cases, %d failures\n", i + 1, failures);
}

/* bad [GID-INDEX [all]]; a negative index: by LID */
int main(int argc, char **argv)
{
	int gid_index = argc > 1 ? atoi(argv[1]) : -1;
	int fds[2], status;
	pid_t child;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	child = fork();
	CHECK(child >= 0);
	alarm(120);
	if (!child) {
		close(fds[0]);
		responder(fds[1], gid_index);
		return 0;
	}
	close(fds[1]);
	requester(fds[0], gid_index, argc > 2);
	CHECK(waitpid(child, &status, 0) == child);
	expect("responder", "exit status", status, 0);
	return failures != 0;
}
