/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random work requests between two processes against a model that predicts
 * every byte of both memories and every completion.  Both processes make the
 * same plan from the same seed, round by round: what is posted, what arrives
 * where, which completions come in which order.  model [SEED [SECONDS [GID]]]
 */
#include <errno.h>
#include <infiniband/verbs.h>
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

#define QPS 5
#define MAX_SQ 64
#define MAX_RQ 32
#define MAX_SGE 30
#define MAX_INLINE 480
#define BIG (4u << 20)	  /* longest message of QP 0 */
#define SMALL (64u << 10) /* of the others, except SENDs */
#define SMALL_RECV 4096u
#define EDGE 13 /* bytes of every region that no key covers, at both ends */

static const char *who = "parent";
static uint64_t seed;
static unsigned int round_no;

#define CHECK(x)                                                             \
	do {                                                                 \
		if (!(x)) {                                                  \
			fprintf(stderr,                                      \
				"%s: seed %llu, round %u: %s:%d: %s failed " \
				"(errno %d)\n",                              \
				who, (unsigned long long)seed, round_no,     \
				__FILE__, __LINE__, #x, errno);              \
			exit(1);                                             \
		}                                                            \
	} while (0)

/* ---- chance --------------------------------------------------------- */

static uint64_t next(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static uint32_t below(uint64_t *rng, uint32_t n)
{
	return n ? next(rng) % n : 0;
}

static bool one_in(uint64_t *rng, uint32_t n)
{
	return below(rng, n) == 0;
}

static void fill(uint64_t *rng, uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		uint64_t v = next(rng);

		memcpy(p + i, &v, 8);
	}
	for (; i < n; i++)
		p[i] = next(rng);
}

/* ---- what is agreed -------------------------------------------------- */

/* As requester: where SENDs and WRITEs come from, where READs go to. */
/* As responder: what is written and read, where SENDs go to. */
enum region {
	SOURCE,
	RESULT,
	TARGET,
	RECV,
	REGIONS
};

struct shape {
	uint32_t sq_depth, rq_depth, sges, inl;
	uint32_t size[REGIONS];
	uint32_t slot; /* of each receive */
	enum ibv_mtu mtu;
	uint32_t psn[2];
	bool sig_all;
	uint8_t rnr_timer;
};

struct piece {
	uint32_t off, len;
};

struct op {
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	uint64_t wr_id;
	enum region region;
	uint32_t pieces, total;
	struct piece piece[MAX_SGE];
	uint32_t remote, imm;
	uint64_t arg, compare;
};

struct recv {
	uint64_t wr_id;
	uint32_t pieces;
	struct piece piece[MAX_SGE];
	/* what completes it */
	uint32_t len, imm;
	bool write, with_imm;
};

/* What one side does on one QP in one round. */
struct plan {
	uint64_t rng;
	uint32_t ops, recvs;
	struct op op[MAX_SQ];
	struct recv recv[MAX_RQ]; /* posted by the other side */
};

static struct shape shape[QPS];
static struct plan plan[2][QPS];
static uint8_t *model[2][QPS][REGIONS];
static int me; /* which side this process is */

static void choose_shapes(uint64_t rng)
{
	uint32_t i, r;

	for (i = 0; i < QPS; i++) {
		struct shape *s = &shape[i];
		uint32_t len = i ? SMALL : BIG;

		s->sq_depth = i == 1 ? 1 : 1u << below(&rng, 7);
		s->rq_depth = i == 1 ? 1 : 1u << below(&rng, i ? 6 : 3);
		s->sges = i == 2 ? MAX_SGE : 1 + below(&rng, 8);
		s->inl = i == 2 ? MAX_INLINE : below(&rng, 200);
		s->slot = i ? SMALL_RECV : BIG;
		s->mtu = IBV_MTU_256 + below(&rng, 5);
		for (r = 0; r < 2; r++)
			s->psn[r] = one_in(&rng, 2) ?
					    0xffffff - below(&rng, 4) :
					    below(&rng, 1 << 24);
		s->sig_all = one_in(&rng, 3);
		s->rnr_timer = 1 + below(&rng, 4);
		for (r = 0; r < RECV; r++)
			s->size[r] = len + 2 * EDGE;
		s->size[RECV] = s->slot * s->rq_depth + 2 * EDGE;
	}
}

/* ---- the plan, and what it does to the model -------------------------- */

static uint32_t choose_length(uint64_t *rng, uint32_t max, bool *large)
{
	uint32_t dice = below(rng, 100), limit;

	if (dice < 40)
		limit = 17;
	else if (dice < 70)
		limit = MAX_INLINE + 1;
	else if (dice < 97 || *large)
		limit = 4097;
	else
		limit = max + 1;
	if (limit > 4097)
		*large = true;
	return below(rng, limit < max + 1 ? limit : max + 1);
}

/*
 * @total bytes in @n pieces (some of them empty) that do not overlap, from
 * offset @from and within @room bytes.
 */
static void split(uint64_t *rng, struct piece *p, uint32_t n, uint32_t total,
		  uint32_t from, uint32_t room)
{
	uint32_t gap = room - total, i;

	for (i = 0; i < n; i++) {
		uint32_t skip = below(rng, gap < 64 ? gap + 1 : 64);
		uint32_t len = below(rng, total + 1);

		if (one_in(rng, 5))
			len = 0;
		if (i + 1 == n)
			len = total;
		from += skip;
		gap -= skip;
		p[i] = (struct piece){from, len};
		from += len;
		total -= len;
	}
}

static void copy_pieces(uint8_t *to, const uint8_t *base, const struct piece *p,
			uint32_t n)
{
	for (; n--; p++) {
		memcpy(to, base + p->off, p->len);
		to += p->len;
	}
}

static void place_pieces(uint8_t *base, const uint8_t *from, uint32_t len,
			 const struct piece *p, uint32_t n)
{
	for (; n-- && len; p++) {
		uint32_t part = p->len < len ? p->len : len;

		memcpy(base + p->off, from, part);
		from += part;
		len -= part;
	}
}

static bool takes_recv(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_send(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool with_imm(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The receive that @op takes: large enough, often larger. */
static void plan_recv(const struct shape *s, struct plan *p,
		      const struct op *op)
{
	struct recv *r = &p->recv[p->recvs];
	uint32_t len = is_send(op->opcode) ? op->total : 0;
	uint32_t base = EDGE + p->recvs++ * s->slot;
	uint32_t room = s->slot;

	r->wr_id = next(&p->rng);
	r->pieces = below(&p->rng, s->sges + 1);
	if (len && !r->pieces)
		r->pieces = 1;
	if (r->pieces)
		split(&p->rng, r->piece, r->pieces,
		      len + below(&p->rng, room - len + 1), base, room);
	r->len = op->total;
	r->imm = op->imm;
	r->with_imm = with_imm(op->opcode);
	r->write = op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void carry_out_atomic(const struct op *op, uint8_t *target,
			     uint8_t *result)
{
	uint64_t old, new;

	memcpy(&old, target, 8);
	new = old;
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		new += op->arg;
	else if (old == op->compare)
		new = op->arg;
	memcpy(target, &new, 8);
	memcpy(result + op->piece[0].off, &old, 8);
}

static void carry_out(int side, uint32_t q, const struct plan *p,
		      const struct op *op)
{
	static uint8_t bytes[BIG];
	uint8_t **local = model[side][q], **remote = model[!side][q];
	uint8_t *target = remote[TARGET] + op->remote;

	if (is_atomic(op->opcode)) {
		carry_out_atomic(op, target, local[RESULT]);
		return;
	}
	if (op->opcode == IBV_WR_RDMA_READ) {
		place_pieces(local[RESULT], target, op->total, op->piece,
			     op->pieces);
		return;
	}
	copy_pieces(bytes, local[op->region], op->piece, op->pieces);
	if (is_send(op->opcode))
		place_pieces(remote[RECV], bytes, op->total,
			     p->recv[p->recvs - 1].piece,
			     p->recv[p->recvs - 1].pieces);
	else
		memcpy(target, bytes, op->total);
}

static enum ibv_wr_opcode choose_opcode(struct plan *p, uint32_t recvs_left)
{
	static const enum ibv_wr_opcode all[] = {
		IBV_WR_RDMA_WRITE,	    IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,  IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,	    IBV_WR_SEND,
	};

	return all[below(&p->rng, recvs_left ? 8 : 4)];
}

static void plan_op(int side, uint32_t q, struct op *op, bool *large, bool last)
{
	const struct shape *s = &shape[q];
	struct plan *p = &plan[side][q];
	uint32_t max = s->size[TARGET] - 2 * EDGE;
	bool to_result;

	memset(op, 0, sizeof(*op));
	op->opcode = choose_opcode(p, s->rq_depth - p->recvs);
	op->wr_id = next(&p->rng);
	op->imm = next(&p->rng);
	if (last || one_in(&p->rng, 3))
		op->flags |= IBV_SEND_SIGNALED;
	if (one_in(&p->rng, 4))
		op->flags |= IBV_SEND_FENCE;
	if (one_in(&p->rng, 4))
		op->flags |= IBV_SEND_SOLICITED;
	to_result = op->opcode == IBV_WR_RDMA_READ || is_atomic(op->opcode);
	/* What READs bring may be sent on behind a fence. */
	if (to_result || (op->flags & IBV_SEND_FENCE && one_in(&p->rng, 3)))
		op->region = RESULT;
	if (is_atomic(op->opcode)) {
		op->pieces = 1;
		op->total = 8;
		op->remote = EDGE + 3 + 8 * below(&p->rng, max / 8 - 1);
		op->arg = next(&p->rng);
		op->compare = next(&p->rng);
		if (one_in(&p->rng, 2)) /* hits */
			memcpy(&op->compare,
			       model[!side][q][TARGET] + op->remote, 8);
	} else {
		op->pieces = below(&p->rng, s->sges + 1);
		if (op->pieces)
			op->total = choose_length(
				&p->rng, is_send(op->opcode) ? s->slot : max,
				large);
		if (op->region == SOURCE && op->total <= s->inl &&
		    one_in(&p->rng, 2))
			op->flags |= IBV_SEND_INLINE;
		op->remote = EDGE + below(&p->rng, max - op->total + 1);
	}
	split(&p->rng, op->piece, op->pieces, op->total, EDGE, max);
	if (takes_recv(op->opcode))
		plan_recv(s, p, op);
	carry_out(side, q, p, op);
}

/* New bytes to send: in the model, and in memory if it is ours. */
static void refresh(int side, uint32_t q, uint8_t *memory)
{
	struct plan *p = &plan[side][q];
	uint32_t len = shape[q].size[SOURCE] - 2 * EDGE;
	uint32_t n = below(&p->rng, 2048);
	uint32_t at = EDGE + below(&p->rng, len - n);

	fill(&p->rng, model[side][q][SOURCE] + at, n);
	if (memory)
		memcpy(memory + at, model[side][q][SOURCE] + at, n);
}

static void make_plan(int side, uint32_t q, uint8_t *memory)
{
	struct plan *p = &plan[side][q];
	bool large = !one_in(&p->rng, 8);
	uint32_t i;

	refresh(side, q, memory);
	p->recvs = 0;
	p->ops = below(&p->rng, shape[q].sq_depth + 1);
	for (i = 0; i < p->ops; i++)
		plan_op(side, q, &p->op[i], &large, i + 1 == p->ops);
}

/* ---- verbs ---------------------------------------------------------- */

struct qp {
	struct ibv_qp *qp;
	uint8_t *memory[REGIONS];
	struct ibv_mr *mr[REGIONS];
	struct ibv_cq *send_cq, *recv_cq;
	uint32_t send_at, send_polled; /* ops posted, completions seen up to */
	uint32_t recv_at, recv_polled;
};

struct address {
	uint16_t lid;
	union ibv_gid gid;
	uint32_t qpn[QPS];
	uint64_t target[QPS];
	uint32_t rkey[QPS];
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cqs[QPS + 1];
static uint32_t n_cqs;
static struct qp qps[QPS];
static struct address own, peer;
static int gid_index = -1;
static uint64_t own_rng; /* for what the other side need not know */
static unsigned long n_ops, n_recvs, n_bytes;

static void create_cqs(uint64_t rng)
{
	uint32_t i;

	/* One for all, one for sends and one for receives, or more. */
	n_cqs = 1 + below(&rng, QPS + 1);
	for (i = 0; i < n_cqs; i++) {
		struct ibv_cq_init_attr_ex attr = {
			.cqe = QPS * (MAX_SQ + MAX_RQ),
			.wc_flags = IBV_WC_STANDARD_FLAGS,
		};

		CHECK(cqs[i] = ibv_create_cq_ex(ctx, &attr));
	}
}

static void create_memory(uint32_t q)
{
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	uint32_t r;

	for (r = 0; r < REGIONS; r++) {
		uint32_t size = shape[q].size[r];
		/* Targets such that offset EDGE + 3 is 8-byte aligned. */
		uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(p != MAP_FAILED);
		memcpy(p, model[me][q][r], size);
		qps[q].memory[r] = p;
		CHECK(qps[q].mr[r] = ibv_reg_mr(pd, p + EDGE, size - 2 * EDGE,
						r == SOURCE ? 0 : all));
	}
}

static void create_qp(uint32_t q)
{
	const struct shape *s = &shape[q];
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cqs[q % n_cqs]),
		.recv_cq = ibv_cq_ex_to_cq(cqs[(q + 1) % n_cqs]),
		.cap = {s->sq_depth, s->rq_depth, s->sges, s->sges, s->inl},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = s->sig_all,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	CHECK(qps[q].qp = ibv_create_qp_ex(ctx, &attr));
	CHECK(attr.cap.max_send_wr == s->sq_depth);
	CHECK(attr.cap.max_inline_data >= s->inl);
	qps[q].send_cq = attr.send_cq;
	qps[q].recv_cq = attr.recv_cq;
	own.qpn[q] = qps[q].qp->qp_num;
	own.target[q] = (uintptr_t)qps[q].memory[TARGET];
	own.rkey[q] = qps[q].mr[TARGET]->rkey;
}

static void connect_qp(uint32_t q)
{
	const struct shape *s = &shape[q];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = s->mtu,
		.dest_qp_num = peer.qpn[q],
		.rq_psn = s->psn[!me],
		.sq_psn = s->psn[me],
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = s->rnr_timer,
		.timeout = 18, /* 1 s */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.dlid = peer.lid, .port_num = 1},
	};
	struct ibv_qp *qp = qps[q].qp;

	if (gid_index >= 0) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid = peer.gid;
		attr.ah_attr.grh.sgid_index = gid_index;
		attr.ah_attr.grh.hop_limit = 1;
	}
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC));
}

static void open_side(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	uint32_t q;

	CHECK(list && list[0]);
	CHECK(ctx = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	CHECK(!ibv_query_port(ctx, 1, &port));
	own.lid = port.lid;
	if (gid_index >= 0)
		CHECK(!ibv_query_gid(ctx, 1, gid_index, &own.gid));
	CHECK(pd = ibv_alloc_pd(ctx));
	create_cqs(own_rng);
	for (q = 0; q < QPS; q++) {
		create_memory(q);
		create_qp(q);
	}
}

static void close_side(void)
{
	uint32_t q, r;

	for (q = 0; q < QPS; q++) {
		CHECK(!ibv_destroy_qp(qps[q].qp));
		for (r = 0; r < REGIONS; r++)
			CHECK(!ibv_dereg_mr(qps[q].mr[r]));
	}
	for (q = 0; q < n_cqs; q++)
		CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cqs[q])));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(ctx));
}

/* ---- posting: the old way ------------------------------------------- */

static uint8_t scratch[MAX_SQ][MAX_INLINE];

static void build_sges(uint32_t q, enum region region, const struct piece *p,
		       uint32_t n, struct ibv_sge *sge)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		sge[i].addr = (uintptr_t)qps[q].memory[region] + p[i].off;
		sge[i].length = p[i].len;
		sge[i].lkey = qps[q].mr[region]->lkey;
	}
}

/* Inline: from memory that is overwritten after the post, with any key. */
static void inline_sges(const struct piece *p, uint32_t n, uint8_t *to,
			struct ibv_sge *sge)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(to, (void *)(uintptr_t)sge[i].addr, p[i].len);
		sge[i].addr = p[i].len ? (uintptr_t)to : 0;
		sge[i].lkey = next(&own_rng);
		to += p[i].len;
	}
}

static void build_wr(uint32_t q, const struct op *op, uint8_t *inl,
		     struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	build_sges(q, op->region, op->piece, op->pieces, sge);
	if (op->flags & IBV_SEND_INLINE)
		inline_sges(op->piece, op->pieces, inl, sge);
	*wr = (struct ibv_send_wr){
		.wr_id = op->wr_id,
		.sg_list = sge,
		.num_sge = op->pieces,
		.opcode = op->opcode,
		.send_flags = op->flags,
		.imm_data = op->imm,
	};
	if (is_atomic(op->opcode)) {
		bool add = op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

		wr->wr.atomic.remote_addr = peer.target[q] + op->remote;
		wr->wr.atomic.rkey = peer.rkey[q];
		wr->wr.atomic.compare_add = add ? op->arg : op->compare;
		wr->wr.atomic.swap = op->arg;
	} else {
		wr->wr.rdma.remote_addr = peer.target[q] + op->remote;
		wr->wr.rdma.rkey = peer.rkey[q];
	}
}

/* Makes @wr one that is refused. */
static void spoil(struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	static uint8_t bytes[4096];

	*sge = (struct ibv_sge){(uintptr_t)bytes, sizeof(bytes), 0};
	wr->sg_list = sge;
	wr->num_sge = 1;
	switch (below(&own_rng, 5)) {
	case 0:
		wr->opcode = 99;
		break;
	case 1:
		wr->num_sge = MAX_SGE + 2;
		wr->send_flags &= ~IBV_SEND_INLINE;
		break;
	case 2:
		wr->opcode = IBV_WR_SEND;
		wr->send_flags |= IBV_SEND_INLINE;
		break;
	case 3:
		wr->opcode = IBV_WR_RDMA_READ;
		wr->send_flags |= IBV_SEND_INLINE;
		sge->length = 1;
		break;
	case 4:
		wr->num_sge = -1;
		break;
	}
}

/* @n ops in a chain; perhaps a bad one behind the first @good of them. */
static void post_chain(uint32_t q, uint32_t n)
{
	static struct ibv_sge sge[MAX_SQ + 2][MAX_SGE];
	static struct ibv_send_wr wr[MAX_SQ + 2];
	struct ibv_send_wr *bad = NULL, extra;
	struct plan *p = &plan[me][q];
	struct ibv_sge extra_sge;
	uint32_t i, at = qps[q].send_at, good = n;
	bool full = !qps[q].send_polled && at + n == shape[q].sq_depth;
	int wanted = 0, err;

	for (i = 0; i < n; i++) {
		build_wr(q, &p->op[at + i], scratch[i], &wr[i], sge[i]);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	if (one_in(&own_rng, 4)) {
		good = below(&own_rng, n + 1);
		extra = wr[good < n ? good : n - 1];
		extra.next = good < n ? &wr[good] : NULL;
		if (good == n && full) {
			wanted = ENOMEM; /* right, but one too many */
		} else {
			wanted = EINVAL;
			spoil(&extra, &extra_sge);
		}
		if (good)
			wr[good - 1].next = &extra;
	}
	err = ibv_post_send(qps[q].qp, wanted && !good ? &extra : wr, &bad);
	CHECK(err == wanted);
	CHECK(!wanted || bad == &extra);
	if (good < n)
		CHECK(!ibv_post_send(qps[q].qp, &wr[good], &bad));
	memset(scratch, 0xee, sizeof(scratch));
	qps[q].send_at += n;
}

/* ---- posting: the new way ------------------------------------------- */

static void wr_op(struct ibv_qp_ex *qpx, uint32_t q, const struct op *op)
{
	uint64_t addr = peer.target[q] + op->remote;
	uint32_t rkey = peer.rkey[q];

	qpx->wr_id = op->wr_id;
	qpx->wr_flags = op->flags & ~IBV_SEND_INLINE;
	switch (op->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qpx);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qpx, op->imm);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qpx, rkey, addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qpx, rkey, addr, op->imm);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qpx, rkey, addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qpx, rkey, addr, op->compare, op->arg);
		break;
	default:
		ibv_wr_atomic_fetch_add(qpx, rkey, addr, op->arg);
	}
}

static void wr_data(struct ibv_qp_ex *qpx, uint32_t q, const struct op *op)
{
	struct ibv_data_buf buf[MAX_SGE];
	struct ibv_sge sge[MAX_SGE];
	uint32_t i;

	build_sges(q, op->region, op->piece, op->pieces, sge);
	if (!(op->flags & IBV_SEND_INLINE)) {
		if (op->pieces == 1)
			ibv_wr_set_sge(qpx, sge[0].lkey, sge[0].addr,
				       sge[0].length);
		else
			ibv_wr_set_sge_list(qpx, op->pieces, sge);
		return;
	}
	inline_sges(op->piece, op->pieces, scratch[0], sge);
	for (i = 0; i < op->pieces; i++) {
		buf[i].addr = (void *)(uintptr_t)sge[i].addr;
		buf[i].length = sge[i].length;
	}
	if (op->pieces == 1)
		ibv_wr_set_inline_data(qpx, buf[0].addr, buf[0].length);
	else
		ibv_wr_set_inline_data_list(qpx, op->pieces, buf);
	memset(scratch, 0xdd, sizeof(scratch[0]));
}

static void wr_session(uint32_t q, uint32_t n)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qps[q].qp);
	const struct op *op = &plan[me][q].op[qps[q].send_at];
	uint32_t i;

	ibv_wr_start(qpx);
	for (i = 0; i < n; i++) {
		wr_op(qpx, q, &op[i]);
		wr_data(qpx, q, &op[i]);
	}
}

static void post_session(uint32_t q, uint32_t n)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qps[q].qp);
	static struct ibv_sge sge[MAX_SGE + 2];

	if (one_in(&own_rng, 5)) { /* as if it had not been */
		wr_session(q, n);
		ibv_wr_abort(qpx);
	}
	if (one_in(&own_rng, 5)) {
		wr_session(q, n);
		ibv_wr_set_sge_list(qpx, MAX_SGE + 2, sge);
		CHECK(ibv_wr_complete(qpx) == EINVAL);
	}
	if (one_in(&own_rng, 5) && !qps[q].send_polled &&
	    qps[q].send_at + n == shape[q].sq_depth) {
		wr_session(q, n);
		ibv_wr_send(qpx);
		CHECK(ibv_wr_complete(qpx) == ENOMEM);
	}
	wr_session(q, n);
	CHECK(!ibv_wr_complete(qpx));
	qps[q].send_at += n;
}

static void post_some_sends(uint32_t q)
{
	uint32_t left = plan[me][q].ops - qps[q].send_at;
	uint32_t n = 1 + below(&own_rng, left < 8 ? left : 8);

	if (!left)
		return;
	if (one_in(&own_rng, 2))
		post_chain(q, n);
	else
		post_session(q, n);
}

/* ---- receives -------------------------------------------------------- */

static void post_some_recvs(uint32_t q)
{
	static struct ibv_sge sge[MAX_RQ + 1][MAX_SGE];
	static struct ibv_recv_wr wr[MAX_RQ + 1];
	struct plan *p = &plan[!me][q];
	uint32_t left = p->recvs - qps[q].recv_at, i;
	uint32_t n = 1 + below(&own_rng, left);
	struct ibv_recv_wr *bad;
	bool spoiled;

	if (!left)
		return;
	for (i = 0; i < n; i++) {
		struct recv *r = &p->recv[qps[q].recv_at + i];

		build_sges(q, RECV, r->piece, r->pieces, sge[i]);
		wr[i] = (struct ibv_recv_wr){
			.wr_id = r->wr_id,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = sge[i],
			.num_sge = r->pieces,
		};
	}
	spoiled = one_in(&own_rng, 8);
	if (spoiled) {
		wr[n - 1].next = &wr[n];
		wr[n] = (struct ibv_recv_wr){.num_sge = MAX_SGE + 10};
	}
	CHECK(ibv_post_recv(qps[q].qp, wr, &bad) == (spoiled ? EINVAL : 0));
	CHECK(!spoiled || bad == &wr[n]);
	qps[q].recv_at += n;
}

/* ---- completions ----------------------------------------------------- */

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return IBV_WC_SEND;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	default:
		return IBV_WC_FETCH_ADD;
	}
}

static void check_send(uint32_t q, const struct ibv_wc *wc)
{
	const struct plan *p = &plan[me][q];
	const struct op *op;

	do {
		CHECK(qps[q].send_polled < qps[q].send_at);
		op = &p->op[qps[q].send_polled++];
	} while (!shape[q].sig_all && !(op->flags & IBV_SEND_SIGNALED));
	CHECK(wc->wr_id == op->wr_id);
	CHECK(wc->opcode == wc_opcode(op->opcode));
	CHECK(wc->byte_len == op->total);
	CHECK(!wc->wc_flags);
}

static void check_recv(uint32_t q, const struct ibv_wc *wc)
{
	const struct recv *r = &plan[!me][q].recv[qps[q].recv_polled++];

	CHECK(qps[q].recv_polled <= qps[q].recv_at);
	CHECK(wc->wr_id == r->wr_id);
	CHECK(wc->opcode ==
	      (r->write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
	CHECK(wc->byte_len == r->len);
	CHECK(wc->wc_flags == (r->with_imm ? IBV_WC_WITH_IMM : 0));
	CHECK(!r->with_imm || wc->imm_data == r->imm);
	CHECK(wc->src_qp == peer.qpn[q]);
}

static void check_wc(const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	uint32_t q;

	for (q = 0; q < QPS && own.qpn[q] != wc->qp_num; q++)
		;
	CHECK(q < QPS);
	if (wc->status != IBV_WC_SUCCESS)
		fprintf(stderr, "%s: QP %u: %s, vendor_err %u\n", who, q,
			ibv_wc_status_str(wc->status), wc->vendor_err);
	CHECK(wc->status == IBV_WC_SUCCESS);
	if (wc->opcode & IBV_WC_RECV) {
		CHECK(cq == qps[q].recv_cq);
		check_recv(q, wc);
	} else {
		CHECK(cq == qps[q].send_cq);
		check_send(q, wc);
	}
}

static void poll_new_way(struct ibv_cq_ex *cq, uint32_t max)
{
	struct ibv_poll_cq_attr attr = {0};
	int err = ibv_start_poll(cq, &attr);

	if (err == ENOENT)
		return;
	CHECK(!err);
	while (!err) {
		struct ibv_wc wc = {
			.wr_id = cq->wr_id,
			.status = cq->status,
			.opcode = ibv_wc_read_opcode(cq),
			.vendor_err = ibv_wc_read_vendor_err(cq),
			.byte_len = ibv_wc_read_byte_len(cq),
			.imm_data = ibv_wc_read_imm_data(cq),
			.qp_num = ibv_wc_read_qp_num(cq),
			.src_qp = ibv_wc_read_src_qp(cq),
			.wc_flags = ibv_wc_read_wc_flags(cq),
		};

		check_wc(ibv_cq_ex_to_cq(cq), &wc);
		if (!--max)
			break;
		err = ibv_next_poll(cq);
		CHECK(!err || err == ENOENT);
	}
	ibv_end_poll(cq);
}

static void poll_some(void)
{
	struct ibv_cq_ex *cq = cqs[below(&own_rng, n_cqs)];
	uint32_t max = 1 + below(&own_rng, 16);
	struct ibv_wc wc[16];
	int i, n;

	if (one_in(&own_rng, 2)) {
		poll_new_way(cq, max);
		return;
	}
	n = ibv_poll_cq(ibv_cq_ex_to_cq(cq), max, wc);
	CHECK(n >= 0 && n <= (int)max);
	for (i = 0; i < n; i++)
		check_wc(ibv_cq_ex_to_cq(cq), &wc[i]);
}

/* ---- rounds ---------------------------------------------------------- */

static void barrier(int fd)
{
	char byte = 'b';

	CHECK(write(fd, &byte, 1) == 1);
	CHECK(read(fd, &byte, 1) == 1 && byte == 'b');
}

static bool round_done(void)
{
	uint32_t q;

	for (q = 0; q < QPS; q++)
		if (qps[q].send_polled < plan[me][q].ops ||
		    qps[q].recv_polled < plan[!me][q].recvs)
			return false;
	return true;
}

/* QP 0 has too much of it to be looked at every time. */
static void check_memory(bool all)
{
	uint32_t q, r, i;

	for (q = !all; q < QPS; q++) {
		for (r = 0; r < REGIONS; r++) {
			const uint8_t *is = qps[q].memory[r];
			const uint8_t *should = model[me][q][r];

			if (!memcmp(is, should, shape[q].size[r]))
				continue;
			for (i = 0; is[i] == should[i]; i++)
				;
			fprintf(stderr,
				"%s: QP %u, region %u, byte %u: %02x, should "
				"be %02x\n",
				who, q, r, i, is[i], should[i]);
			CHECK(!"as predicted");
		}
	}
}

static void count(void)
{
	uint32_t q, i;

	for (q = 0; q < QPS; q++) {
		n_ops += plan[me][q].ops;
		n_recvs += plan[!me][q].recvs;
		for (i = 0; i < plan[me][q].ops; i++)
			n_bytes += plan[me][q].op[i].total;
	}
}

static void play_round(int fd)
{
	struct ibv_wc wc;
	uint32_t q, i;

	for (q = 0; q < QPS; q++) {
		qps[q].send_at = qps[q].send_polled = 0;
		qps[q].recv_at = qps[q].recv_polled = 0;
		make_plan(me, q, qps[q].memory[SOURCE]);
		make_plan(!me, q, NULL);
	}
	barrier(fd);
	while (!round_done()) {
		q = below(&own_rng, QPS);
		switch (below(&own_rng, 4)) {
		case 0:
			post_some_sends(q);
			break;
		case 1:
			post_some_recvs(q);
			break;
		default:
			poll_some();
		}
	}
	barrier(fd);
	check_memory(round_no % 8 == 0);
	for (i = 0; i < n_cqs; i++)
		CHECK(!ibv_poll_cq(ibv_cq_ex_to_cq(cqs[i]), 1, &wc));
	count();
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void play(int fd, double limit)
{
	double end = seconds() + limit;
	uint32_t q;
	char go = 1;

	open_side();
	CHECK(write(fd, &own, sizeof(own)) == sizeof(own));
	CHECK(recv(fd, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	for (q = 0; q < QPS; q++)
		connect_qp(q);
	barrier(fd); /* both are in RTS */
	for (;;) {
		if (!me) {
			go = seconds() < end;
			CHECK(write(fd, &go, 1) == 1);
		} else {
			CHECK(read(fd, &go, 1) == 1);
		}
		if (!go)
			break;
		round_no++;
		play_round(fd);
	}
	check_memory(true);
	close_side();
}

static void make_model(uint64_t rng)
{
	uint32_t side, q, r;

	choose_shapes(next(&rng));
	for (side = 0; side < 2; side++) {
		for (q = 0; q < QPS; q++) {
			plan[side][q].rng = next(&rng);
			for (r = 0; r < REGIONS; r++) {
				uint32_t size = shape[q].size[r];

				CHECK(model[side][q][r] = malloc(size));
				fill(&rng, model[side][q][r], size);
			}
		}
	}
}

int main(int argc, char **argv)
{
	double limit = argc > 2 ? atof(argv[2]) : 10;
	int fds[2], status;
	pid_t child;

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	if (!seed)
		seed = time(NULL);
	if (argc > 3)
		gid_index = atoi(argv[3]);
	make_model(seed);
	own_rng = seed + 1;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	child = fork();
	CHECK(child >= 0);
	alarm(limit + 60);
	if (!child) {
		who = "child";
		me = 1;
		own_rng += 1;
		close(fds[0]);
		play(fds[1], limit);
		return 0;
	}
	close(fds[1]);
	play(fds[0], limit);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
	printf("seed %llu: %u rounds, %lu requests, %lu receives, %lu bytes, "
	       "all as predicted\n",
	       (unsigned long long)seed, round_no, n_ops, n_recvs, n_bytes);
	return 0;
}
