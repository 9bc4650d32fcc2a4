// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every completion status that the device has, made on purpose, on each kind of
 * connection: what both sides get and which state their queue pairs are in, the
 * asynchronous event, what is flushed and in which order; then the same two
 * queue pairs are reset and used.  docs/verbs.md has the table.
 */
#include <fcntl.h>
#include <poll.h>

#include "xrc_objects.h"

#define SLOT 256 /* of a buffer, for each number of a work request */
#define SLOTS 32
#define GRH 40
#define LEN 64
#define QKEY 0x1ee7u
#define DEPTH 16
#define NONE (-1)

enum kind {
	RC,
	RC_SRQ, /* the receiver has one */
	UC,
	UD,
	XRC,
	KINDS
};

static const char *const kind_names[] = {"RC", "RC+SRQ", "UC", "UD", "XRC"};

struct side {
	struct end e;
	struct ibv_pd *other_pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
	struct ibv_mr *mr;
	struct ibv_mr *all; /* every address, on demand */
	struct ibv_ah *ah, *foreign_ah;
	struct ibv_mw *mw;
	uint8_t *buf;
	uint8_t *gone; /* nothing is mapped there */
};

struct rig {
	enum kind kind;
	struct side a, b; /* sender, receiver */
	uint64_t taken;	  /* next receive of b to complete */
	uint64_t posted;  /* of b's */
};

/* ---- what goes wrong ------------------------------------------------- */

enum fault {
	LKEY,
	SOURCE_GONE,
	TOO_LONG,
	FOREIGN_AH,
	NO_READS, /* the sender may have none under way */
	BIND,
	RKEY,
	WRONG_QKEY,
	NO_RECEIVE,
	SHORT_RECEIVE,
	RECEIVE_LKEY,
	INVALIDATE,
	UNALIGNED,
	NO_DEST_READS, /* the receiver serves none */
	WRONG_SRQ,
	TARGET_GONE,
	NOBODY,
	BY_HAND, /* modified to ERR while requests wait */
};

#define BIT(kind) (1u << (kind))
#define RCS (BIT(RC) | BIT(RC_SRQ))
#define RELIABLE (RCS | BIT(XRC))
#define CONNECTED (RELIABLE | BIT(UC))
#define UNRELIABLE (BIT(UC) | BIT(UD))
#define ALL_KINDS (CONNECTED | BIT(UD))

struct test {
	const char *name;
	unsigned int kinds;
	enum fault fault;
	int sent;	      /* status of the send */
	int received;	      /* of the receive, NONE: it is left alone */
	int sender, receiver; /* states */
	int event;	      /* at the receiver */
};

#define W(status) IBV_WC_##status
#define S(state) IBV_QPS_##state

static const struct test tests[] = {
	/* A request that is wrong by itself: the peer hears nothing. */
	{"wrong lkey", RELIABLE, LKEY, W(LOC_PROT_ERR), NONE, S(ERR), S(RTS),
	 NONE},
	{"wrong lkey", UNRELIABLE, LKEY, W(LOC_PROT_ERR), NONE, S(SQE), S(RTS),
	 NONE},
	{"unmapped source", RELIABLE, SOURCE_GONE, W(LOC_PROT_ERR), NONE,
	 S(ERR), S(RTS), NONE},
	{"unmapped source", UNRELIABLE, SOURCE_GONE, W(LOC_PROT_ERR), NONE,
	 S(SQE), S(RTS), NONE},
	{"too long", RELIABLE, TOO_LONG, W(LOC_LEN_ERR), NONE, S(ERR), S(RTS),
	 NONE},
	{"too long", UNRELIABLE, TOO_LONG, W(LOC_LEN_ERR), NONE, S(SQE), S(RTS),
	 NONE},
	{"address handle of another PD", BIT(UD), FOREIGN_AH, W(LOC_QP_OP_ERR),
	 NONE, S(SQE), S(RTS), NONE},
	{"READ with max_rd_atomic 0", RELIABLE, NO_READS, W(LOC_QP_OP_ERR),
	 NONE, S(ERR), S(RTS), NONE},
	{"bind, region without MW_BIND", RELIABLE, BIND, W(MW_BIND_ERR), NONE,
	 S(ERR), S(RTS), NONE},
	{"bind, region without MW_BIND", BIT(UC), BIND, W(MW_BIND_ERR), NONE,
	 S(SQE), S(RTS), NONE},
	/* One that the peer refuses. */
	{"wrong rkey", RELIABLE, RKEY, W(REM_ACCESS_ERR), NONE, S(ERR), S(ERR),
	 IBV_EVENT_QP_ACCESS_ERR},
	{"atomic, not aligned", RELIABLE, UNALIGNED, W(REM_INV_REQ_ERR), NONE,
	 S(ERR), S(ERR), IBV_EVENT_QP_REQ_ERR},
	{"READ, peer's max_dest_rd_atomic 0", RELIABLE, NO_DEST_READS,
	 W(REM_INV_REQ_ERR), NONE, S(ERR), S(ERR), IBV_EVENT_QP_REQ_ERR},
	{"no such SRQ", BIT(XRC), WRONG_SRQ, W(REM_INV_REQ_ERR), NONE, S(ERR),
	 S(ERR), IBV_EVENT_QP_REQ_ERR},
	{"unmapped target", RELIABLE, TARGET_GONE, W(REM_OP_ERR), NONE, S(ERR),
	 S(ERR), IBV_EVENT_QP_FATAL},
	/* A receive that is wrong: its completion says it, no event does. */
	{"receive too short", RELIABLE, SHORT_RECEIVE, W(REM_INV_REQ_ERR),
	 W(LOC_LEN_ERR), S(ERR), S(ERR), NONE},
	{"receive too short", UNRELIABLE, SHORT_RECEIVE, W(SUCCESS),
	 W(LOC_LEN_ERR), S(RTS), S(ERR), NONE},
	{"receive with wrong lkey", RELIABLE, RECEIVE_LKEY, W(REM_OP_ERR),
	 W(LOC_PROT_ERR), S(ERR), S(ERR), NONE},
	{"receive with wrong lkey", UNRELIABLE, RECEIVE_LKEY, W(SUCCESS),
	 W(LOC_PROT_ERR), S(RTS), S(ERR), NONE},
	{"nothing to invalidate", RELIABLE, INVALIDATE, W(REM_ACCESS_ERR),
	 W(LOC_ACCESS_ERR), S(ERR), S(ERR), NONE},
	/* The peer does not answer, or not yes. */
	{"nobody there", RELIABLE, NOBODY, W(RETRY_EXC_ERR), NONE, S(ERR),
	 S(RTS), NONE},
	{"no receive", RELIABLE, NO_RECEIVE, W(RNR_RETRY_EXC_ERR), NONE, S(ERR),
	 S(RTS), NONE},
	{"modified to ERR", RELIABLE, BY_HAND, W(WR_FLUSH_ERR), NONE, S(ERR),
	 S(RTS), NONE},
	/* Unreliable: dropped without a word. */
	{"wrong rkey", BIT(UC), RKEY, W(SUCCESS), NONE, S(RTS), S(RTS), NONE},
	{"unmapped target", BIT(UC), TARGET_GONE, W(SUCCESS), NONE, S(RTS),
	 S(RTS), NONE},
	{"wrong Q_Key", BIT(UD), WRONG_QKEY, W(SUCCESS), NONE, S(RTS), S(RTS),
	 NONE},
	{"nobody there", UNRELIABLE, NOBODY, W(SUCCESS), NONE, S(RTS), S(RTS),
	 NONE},
	{"no receive", UNRELIABLE, NO_RECEIVE, W(SUCCESS), NONE, S(RTS), S(RTS),
	 NONE},
};

static int cases;
static const char *doing = "";

#define EXPECT(what, got, wanted)                                              \
	do {                                                                   \
		int is_ = (int)(got), want_ = (int)(wanted);                   \
                                                                               \
		if (is_ != want_) {                                            \
			fprintf(stderr, "%s: %s is %d, wanted %d (line %d)\n", \
				doing, what, is_, want_, __LINE__);            \
			_exit(1);                                              \
		}                                                              \
	} while (0)

/* ---- objects --------------------------------------------------------- */

static void side_open(struct side *s)
{
	struct ibv_ah_attr attr = {.port_num = 1};

	memset(s, 0, sizeof(*s));
	end_open(&s->e);
	CHECK(s->other_pd = ibv_alloc_pd(s->e.ctx));
	s->scq = new_cq(&s->e, 32, NULL);
	s->rcq = new_cq(&s->e, 32, NULL);
	s->buf = shared_memory(SLOT * SLOTS);
	CHECK(s->mr = ibv_reg_mr(s->e.pd, s->buf, SLOT * SLOTS, ALL_ACCESS));
	CHECK(s->all = ibv_reg_mr(s->e.pd, NULL, SIZE_MAX,
				  ALL_ACCESS | IBV_ACCESS_ON_DEMAND));
	CHECK(s->mw = ibv_alloc_mw(s->e.pd, IBV_MW_TYPE_2));
	s->gone = shared_memory(4096);
	CHECK(!mprotect(s->gone, 4096, PROT_NONE));
	attr.dlid = s->e.port.lid;
	if (s->e.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.is_global = 1;
		attr.grh.dgid = s->e.gid;
		attr.grh.hop_limit = 1;
	}
	CHECK(s->ah = ibv_create_ah(s->e.pd, &attr));
	CHECK(s->foreign_ah = ibv_create_ah(s->other_pd, &attr));
}

static void side_close(struct side *s)
{
	CHECK(!ibv_destroy_qp(s->qp));
	if (s->srq)
		CHECK(!ibv_destroy_srq(s->srq));
	if (s->xrcd)
		CHECK(!ibv_close_xrcd(s->xrcd));
	CHECK(!ibv_destroy_ah(s->ah));
	CHECK(!ibv_destroy_ah(s->foreign_ah));
	CHECK(!ibv_dealloc_mw(s->mw));
	CHECK(!ibv_dereg_mr(s->all));
	CHECK(!ibv_dereg_mr(s->mr));
	CHECK(!ibv_destroy_cq(s->scq));
	CHECK(!ibv_destroy_cq(s->rcq));
	CHECK(!ibv_dealloc_pd(s->other_pd));
	munmap(s->buf, SLOT * SLOTS);
	munmap(s->gone, 4096);
	end_close(&s->e);
}

static void side_create_qp(struct side *s, enum kind kind)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->scq,
		.recv_cq = s->rcq,
		.srq = s->srq,
		.cap = {DEPTH, s->srq ? 0 : DEPTH, 1, s->srq ? 0 : 1, 0},
		.qp_type = kind == UC ? IBV_QPT_UC :
			   kind == UD ? IBV_QPT_UD :
					IBV_QPT_RC,
	};

	CHECK(s->qp = ibv_create_qp(s->e.pd, &init));
}

static void rig_open(struct rig *g, enum kind kind)
{
	struct ibv_srq_init_attr attr = {.attr = {DEPTH, 1, 0}};

	memset(g, 0, sizeof(*g));
	g->kind = kind;
	side_open(&g->a);
	side_open(&g->b);
	if (kind == XRC) {
		CHECK(g->b.xrcd = open_domain(&g->b.e, -1, O_CREAT));
		g->b.srq = new_srq(&g->b.e, g->b.xrcd, g->b.rcq, DEPTH);
		g->b.qp = new_target(&g->b.e, g->b.xrcd);
		g->a.qp = new_sender(&g->a.e, g->a.scq, DEPTH);
		return;
	}
	if (kind == RC_SRQ)
		CHECK(g->b.srq = ibv_create_srq(g->b.e.pd, &attr));
	side_create_qp(&g->a, kind);
	side_create_qp(&g->b, kind);
}

static void connect_side(enum kind kind, struct side *s, uint32_t peer,
			 const struct test *t)
{
	bool more = BIT(kind) & RELIABLE;
	struct ibv_qp_attr attr = {
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.rq_psn = 0xfffffe, /* wraps at once */
		.sq_psn = 0xfffffe,
		.max_dest_rd_atomic = t->fault == NO_DEST_READS ? 0 : 4,
		.max_rd_atomic = t->fault == NO_READS ? 0 : 4,
		.min_rnr_timer = 1,
		.timeout = 10, /* 4 ms */
		.retry_cnt = 1,
		.rnr_retry = t->fault == NO_RECEIVE ? 1 : 7,
		.port_num = 1,
		.qkey = QKEY,
		.ah_attr = {.dlid = s->e.port.lid, .port_num = 1},
	};

	if (s->e.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = s->e.gid;
		attr.ah_attr.grh.hop_limit = 1;
	}
	attr.qp_state = IBV_QPS_INIT;
	if (kind != UD)
		to_init(s->qp);
	else
		CHECK(!ibv_modify_qp(s->qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					     IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(s->qp, &attr,
			     IBV_QP_STATE |
				     (kind == UD ? 0 :
						   IBV_QP_AV | IBV_QP_PATH_MTU |
							   IBV_QP_DEST_QPN |
							   IBV_QP_RQ_PSN) |
				     (more ? IBV_QP_MAX_DEST_RD_ATOMIC |
						      IBV_QP_MIN_RNR_TIMER :
					     0)));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(s->qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN |
				     (more ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						      IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC :
					     0)));
}

static int state(struct side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* ---- posting and polling --------------------------------------------- */

static bool has_receives(const struct rig *g, const struct side *s)
{
	return g->kind != XRC || s == &g->b;
}

static bool has_sends(const struct rig *g, const struct side *s)
{
	return g->kind != XRC || s == &g->a;
}

static void post_recv(struct side *s, uint64_t id, const struct test *t)
{
	struct ibv_sge sge = {(uintptr_t)s->buf + id * SLOT, SLOT, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	if (t && t->fault == SHORT_RECEIVE)
		sge.length = 8;
	if (t && t->fault == RECEIVE_LKEY)
		sge.lkey ^= 0x5500;
	CHECK(!(s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) :
			 ibv_post_recv(s->qp, &wr, &bad)));
}

/* A good one: LEN bytes. */
static void build(struct rig *g, struct side *s, struct ibv_send_wr *wr,
		  struct ibv_sge *sge, uint64_t id)
{
	struct side *peer = s == &g->a ? &g->b : &g->a;

	memset(s->buf + id * SLOT, (int)id + 1, LEN);
	*sge = (struct ibv_sge){(uintptr_t)s->buf + id * SLOT, LEN,
				s->mr->lkey};
	*wr = (struct ibv_send_wr){
		.wr_id = id,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	if (g->kind == UD) {
		wr->wr.ud.ah = s->ah;
		wr->wr.ud.remote_qpn = peer->qp->qp_num;
		wr->wr.ud.remote_qkey = QKEY;
	}
	if (g->kind == XRC)
		CHECK(!ibv_get_srq_num(peer->srq,
				       &wr->qp_type.xrc.remote_srqn));
}

static void rdma(struct rig *g, struct ibv_send_wr *wr, int opcode,
		 const void *addr, uint32_t rkey)
{
	(void)g;
	wr->opcode = opcode;
	wr->wr.rdma.remote_addr = (uintptr_t)addr;
	wr->wr.rdma.rkey = rkey;
}

static void spoil(struct rig *g, enum fault fault, struct ibv_send_wr *wr,
		  struct ibv_sge *sge)
{
	struct side *a = &g->a, *b = &g->b;

	switch (fault) {
	case LKEY:
		sge->lkey ^= 0x5500;
		break;
	case SOURCE_GONE:
		sge->addr = (uintptr_t)a->gone;
		sge->lkey = a->all->lkey;
		break;
	case TOO_LONG:
		/* More than a packet; more than a message may have. */
		sge->length = g->kind == UD ? 4097 : (1u << 31) + 1;
		sge->lkey = a->all->lkey;
		break;
	case FOREIGN_AH:
		wr->wr.ud.ah = a->foreign_ah;
		break;
	case NO_READS:
	case NO_DEST_READS:
		rdma(g, wr, IBV_WR_RDMA_READ, b->buf, b->mr->rkey);
		break;
	case BIND:
		wr->opcode = IBV_WR_BIND_MW;
		wr->num_sge = 0;
		wr->bind_mw.mw = a->mw;
		wr->bind_mw.rkey = ibv_inc_rkey(a->mw->rkey);
		wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
			a->mr, (uintptr_t)a->buf, LEN, IBV_ACCESS_REMOTE_READ};
		break;
	case RKEY:
		rdma(g, wr, IBV_WR_RDMA_WRITE, b->buf, b->mr->rkey ^ 0x5500);
		break;
	case TARGET_GONE:
		rdma(g, wr, IBV_WR_RDMA_WRITE, b->gone, b->all->rkey);
		break;
	case UNALIGNED:
		sge->length = 8;
		wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr->wr.atomic.remote_addr = (uintptr_t)b->buf + 4;
		wr->wr.atomic.rkey = b->mr->rkey;
		break;
	case INVALIDATE:
		wr->opcode = IBV_WR_SEND_WITH_INV;
		wr->invalidate_rkey = b->mw->rkey;
		break;
	case WRONG_QKEY:
		wr->wr.ud.remote_qkey ^= 1;
		break;
	case NOBODY:
		if (g->kind == UD)
			wr->wr.ud.remote_qpn ^= 0x155;
		break;
	case WRONG_SRQ:
		wr->qp_type.xrc.remote_srqn = 0x3ff;
		break;
	default:
		break; /* the receiver's */
	}
}

static void send_one(struct rig *g, struct side *s, uint64_t id)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	build(g, s, &wr, &sge, id);
	CHECK(!ibv_post_send(s->qp, &wr, &bad));
}

static struct ibv_wc take(struct ibv_cq *cq, uint64_t id, int status)
{
	double end = seconds() + 10;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)) && seconds() < end)
		usleep(20);
	EXPECT("number of completions", n, 1);
	EXPECT("wr_id", wc.wr_id, id);
	EXPECT("status", wc.status, status);
	return wc;
}

static void nothing(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	EXPECT("number of completions", ibv_poll_cq(cq, 1, &wc), 0);
}

/* b's next receive got what was sent with @id. */
static void arrived(struct rig *g, uint64_t id)
{
	struct side *b = &g->b;
	uint32_t head = g->kind == UD ? GRH : 0;
	uint64_t at = g->taken++ % SLOTS;
	struct ibv_wc wc = take(b->rcq, at, IBV_WC_SUCCESS);
	const uint8_t *p = b->buf + at * SLOT + head;

	EXPECT("byte_len", wc.byte_len, head + LEN);
	EXPECT("first byte", p[0], id + 1);
	EXPECT("last byte", p[LEN - 1], id + 1);
}

/* ---- a case ---------------------------------------------------------- */

/* 0 is good, 1 goes wrong, 2 (not signaled) and 3 are behind it. */
static void post_all(struct rig *g, const struct test *t)
{
	struct ibv_send_wr wr[4], *bad;
	struct ibv_sge sge[4];
	int i, first = t->fault == NOBODY && g->kind != UD;

	for (i = 0; i < 4; i++) {
		build(g, &g->a, &wr[i], &sge[i], i);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	spoil(g, t->fault, &wr[1], &sge[1]);
	wr[2].send_flags = 0;
	CHECK(!ibv_post_send(g->a.qp, &wr[first], &bad));
	if (t->fault == BY_HAND) {
		take(g->a.scq, 0, IBV_WC_SUCCESS);
		set_state(g->a.qp, IBV_QPS_ERR);
	} else if (!first) {
		take(g->a.scq, 0, IBV_WC_SUCCESS);
	}
}

static bool starves(const struct test *t)
{
	return t->fault == NO_RECEIVE || t->fault == BY_HAND;
}

static void receives_of_b(struct rig *g, const struct test *t)
{
	int i, n = starves(t) ? 1 : 4;

	for (i = 0; i < n; i++)
		post_recv(&g->b, g->posted++ % SLOTS, i == 1 ? t : NULL);
}

static void check_sender(struct rig *g, const struct test *t)
{
	take(g->a.scq, 1, t->sent);
	if (t->sent)
		take(g->a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	take(g->a.scq, 3, t->sent ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
	EXPECT("sender's state", state(&g->a), t->sender);
}

static void check_receiver(struct rig *g, const struct test *t)
{
	bool deaf = t->fault == NOBODY && g->kind != UD;

	if (!deaf)
		arrived(g, 0);
	if (t->received != NONE)
		take(g->b.rcq, g->taken++ % SLOTS, t->received);
	if (!t->sent && !deaf && !starves(t) && t->receiver == IBV_QPS_RTS) {
		arrived(g, 2);
		arrived(g, 3);
	}
	EXPECT("receiver's state", state(&g->b), t->receiver);
}

/* SQE: it still receives, and RTS mends it. */
static void mend(struct rig *g)
{
	post_recv(&g->a, 10, NULL);
	send_one(g, &g->b, 4);
	take(g->b.scq, 4, IBV_WC_SUCCESS);
	take(g->a.rcq, 10, IBV_WC_SUCCESS);
	set_state(g->a.qp, IBV_QPS_RTS);
	send_one(g, &g->a, 5);
	take(g->a.scq, 5, IBV_WC_SUCCESS);
	arrived(g, 5);
}

/* Receives in order, then what is posted from now on. */
static void flush(struct rig *g, struct side *s, const struct test *t)
{
	if (state(s) != IBV_QPS_ERR)
		set_state(s->qp, IBV_QPS_ERR);
	if (has_sends(g, s)) {
		send_one(g, s, 6);
		take(s->scq, 6, IBV_WC_WR_FLUSH_ERR);
		nothing(s->scq);
	}
	if (s == &g->b && !s->srq) {
		post_recv(s, g->posted++ % SLOTS, NULL);
		while (g->taken < g->posted)
			take(s->rcq, g->taken++ % SLOTS, IBV_WC_WR_FLUSH_ERR);
	} else if (s == &g->a && has_receives(g, s)) {
		post_recv(s, 22, NULL);
		take(s->rcq, 20, IBV_WC_WR_FLUSH_ERR);
		take(s->rcq, 21, IBV_WC_WR_FLUSH_ERR);
		take(s->rcq, 22, IBV_WC_WR_FLUSH_ERR);
	} else if (s == &g->b && t->fault == SOURCE_GONE) {
		/* The message had begun: it has one of the SRQ in hand. */
		take(s->rcq, g->taken++ % SLOTS, IBV_WC_WR_FLUSH_ERR);
	}
	nothing(s->rcq);
}

static void expect_event(struct side *s, int type)
{
	struct pollfd p = {s->e.ctx->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	EXPECT("number of events", poll(&p, 1, 10000), 1);
	CHECK(!ibv_get_async_event(s->e.ctx, &event));
	EXPECT("event", event.event_type, type);
	CHECK(event.element.qp == s->qp);
	ibv_ack_async_event(&event);
}

static void no_event(struct side *s)
{
	struct pollfd p = {s->e.ctx->async_fd, POLLIN, 0};

	EXPECT("number of events", poll(&p, 1, 0), 0);
}

static void again(struct rig *g)
{
	static const struct test good = {.name = "good", .fault = BY_HAND};
	uint64_t id = 0;

	set_state(g->a.qp, IBV_QPS_RESET);
	set_state(g->b.qp, IBV_QPS_RESET);
	connect_side(g->kind, &g->a, g->b.qp->qp_num, &good);
	connect_side(g->kind, &g->b, g->a.qp->qp_num, &good);
	/* An SRQ still has what nobody took. */
	while (g->posted < g->taken + 2)
		post_recv(&g->b, g->posted++ % SLOTS, NULL);
	while (g->taken < g->posted) {
		send_one(g, &g->a, id);
		take(g->a.scq, id, IBV_WC_SUCCESS);
		arrived(g, id++);
	}
	if (has_sends(g, &g->b)) {
		post_recv(&g->a, 23, NULL);
		send_one(g, &g->b, 7);
		take(g->b.scq, 7, IBV_WC_SUCCESS);
		take(g->a.rcq, 23, IBV_WC_SUCCESS);
	}
	no_event(&g->a);
	no_event(&g->b);
	set_state(g->a.qp, IBV_QPS_RESET);
	set_state(g->b.qp, IBV_QPS_RESET);
}

static void run(struct rig *g, const struct test *t)
{
	bool deaf = t->fault == NOBODY && g->kind != UD;
	uint32_t peer = g->b.qp->qp_num;
	char name[80];

	snprintf(name, sizeof(name), "%s, %s", kind_names[g->kind], t->name);
	doing = name;
	connect_side(g->kind, &g->a, deaf ? peer ^ 0x155 : peer, t);
	connect_side(g->kind, &g->b, g->a.qp->qp_num, t);
	receives_of_b(g, t);
	post_all(g, t);
	check_sender(g, t);
	check_receiver(g, t);
	if (t->event != NONE)
		expect_event(&g->b, t->event);
	if (t->sender == IBV_QPS_SQE)
		mend(g);
	if (has_receives(g, &g->a)) {
		post_recv(&g->a, 20, NULL);
		post_recv(&g->a, 21, NULL);
	}
	flush(g, &g->a, t);
	flush(g, &g->b, t);
	if (g->b.srq)
		expect_event(&g->b, IBV_EVENT_QP_LAST_WQE_REACHED);
	no_event(&g->a);
	no_event(&g->b);
	again(g);
	cases++;
}

int main(void)
{
	struct rig g;
	int kind;
	size_t i;

	for (kind = 0; kind < KINDS; kind++) {
		rig_open(&g, kind);
		for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
			if (tests[i].kinds & BIT(kind))
				run(&g, &tests[i]);
		side_close(&g.a);
		side_close(&g.b);
	}
	printf("%d cases, all right\n", cases);
	return 0;
}
