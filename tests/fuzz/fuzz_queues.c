/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes in a program's own queues: slots, receive descriptors, doorbells,
 * control line, send line.
 *
 * Its own queue pairs may break.  Promises that are checked beside the
 * sanitizers': nothing but its registered memory is written, and a bystander
 * with queue pairs of its own is served as ever.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rnic/rnic.h"
#include "rnic/state.h"

#define ARENA (RNIC_ARENA_DYNAMIC + (16u << 20))
#define MEM 8192u
#define CANARY 0x5a
#define LOG_DEPTH 3
#define LOG_STRIDE 7

enum {
	VICTIM = 1,
	BYSTANDER = 2
}; /* contexts */

/* ---- a host without a world ----------------------------------------- */

static struct rnic r;
static uint64_t next_page, clock_ns;

static uint64_t now(void *host)
{
	(void)host;
	return clock_ns += 1000;
}

/* One thread: a lock that is held when it is taken is a fault. */
static void lock_init(void *host, struct rnic_lock *lock)
{
	(void)host;
	memset(lock, 0, sizeof(*lock));
}

static enum rnic_lock_result take(void *host, struct rnic_lock *lock)
{
	(void)host;
	assert(!lock->opaque[0]);
	lock->opaque[0] = 1;
	return RNIC_LOCKED;
}

/* A queue pair that is connected to itself may meet its own ring. */
static enum rnic_lock_result try_take(void *host, struct rnic_lock *lock)
{
	return lock->opaque[0] ? RNIC_LOCK_BUSY : take(host, lock);
}

static void drop(void *host, struct rnic_lock *lock)
{
	(void)host;
	lock->opaque[0] = 0;
}

static enum rnic_copy_result copy(void *host, const struct rnic_ref *dst,
				  const struct rnic_ref *src)
{
	(void)host;
	(void)src;
	return dst->space == RNIC_SPACE_RAW ? RNIC_FAULT_SRC : RNIC_FAULT_DST;
}

static void event(void *host, const struct rnic_event *e)
{
	(void)host;
	(void)e;
}

static void timer(void *host, uint64_t deadline)
{
	(void)host;
	(void)deadline;
}

static uint64_t mem_alloc(void *host, uint64_t len)
{
	uint64_t off = next_page;

	(void)host;
	next_page += (len + RNIC_PAGE - 1) & ~(uint64_t)(RNIC_PAGE - 1);
	assert(next_page <= ARENA);
	memset((char *)r.sh + off, 0, next_page - off);
	return off;
}

static void mem_free(void *host, uint64_t off, uint64_t len)
{
	(void)host;
	(void)off;
	(void)len;
}

static const struct rnic_host_ops ops = {
	.now = now,
	.lock_init = lock_init,
	.trylock = try_take,
	.lock = take,
	.unlock = drop,
	.copy = copy,
	.event = event,
	.timer = timer,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
};

/* ---- two queue pairs of one owner, connected to each other ----------- */

struct side {
	uint32_t qpn;
	struct rnic_qp_mem mem;
};

struct owner {
	uint32_t ctx, pdn, cqn, key;
	uint64_t buf; /* arena offset of MEM bytes between canaries */
	struct rnic_cq_mem cq;
	struct side side[2];
};

static void *at(uint64_t off)
{
	return (char *)r.sh + off;
}

static void make_memory(struct owner *o)
{
	struct rnic_mr_attr attr = {
		.addr = 0x10000,
		.iova = 0x10000,
		.len = MEM,
		.access = 0xf,
		.pdn = o->pdn,
		.space = 7, /* cannot be reached but through the arena */
		.nseg = 1,
	};
	uint64_t all = mem_alloc(NULL, MEM + 2 * RNIC_PAGE);

	memset(at(all), CANARY, MEM + 2 * RNIC_PAGE);
	o->buf = all + RNIC_PAGE;
	attr.seg[0] = (struct rnic_mr_seg){attr.addr, MEM, o->buf};
	assert(!rnic_mr_create(&r, o->ctx, &attr, &o->key));
}

static void make_side(struct owner *o, struct side *s)
{
	struct rnic_qp_init init = {
		.type = RNIC_QPT_RC,
		.pdn = o->pdn,
		.send_cqn = o->cqn,
		.recv_cqn = o->cqn,
		.inline_recv = 1,
		.sq_log_depth = LOG_DEPTH,
		.sq_log_stride = LOG_STRIDE,
		.rq_log_depth = LOG_DEPTH,
		.rq_log_stride = 6,
	};

	assert(!rnic_qp_create(&r, o->ctx, &init, &s->qpn, &s->mem));
}

static void connect(struct owner *o, struct side *s, uint32_t peer)
{
	struct rnic_qp_attr a = {
		.state = RNIC_INIT,
		.port_num = 1,
		.access = 0xe,
		.path_mtu = RNIC_MTU_256,
		.dest_qpn = peer,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 1,
		.retry_cnt = 1,
		.rnr_retry = 1,
		.av = {.dlid = 1, .port_num = 1},
	};

	assert(!rnic_qp_modify(&r, o->ctx, s->qpn, &a,
			       RNIC_QP_STATE | RNIC_QP_PKEY_INDEX |
				       RNIC_QP_PORT | RNIC_QP_ACCESS));
	a.state = RNIC_RTR;
	assert(!rnic_qp_modify(&r, o->ctx, s->qpn, &a,
			       RNIC_QP_STATE | RNIC_QP_AV | RNIC_QP_PATH_MTU |
				       RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN |
				       RNIC_QP_MAX_DEST_RD_ATOMIC |
				       RNIC_QP_MIN_RNR_TIMER));
	a.state = RNIC_RTS;
	assert(!rnic_qp_modify(&r, o->ctx, s->qpn, &a,
			       RNIC_QP_STATE | RNIC_QP_TIMEOUT |
				       RNIC_QP_RETRY_CNT | RNIC_QP_RNR_RETRY |
				       RNIC_QP_SQ_PSN | RNIC_QP_MAX_RD_ATOMIC));
}

static void make_owner(struct owner *o, uint32_t ctx)
{
	struct rnic_cq_attr cq = {.log_depth = 4};

	o->ctx = ctx;
	assert(!rnic_pd_create(&r, ctx, 0, &o->pdn));
	assert(!rnic_cq_create(&r, ctx, &cq, &o->cqn, &o->cq));
	make_memory(o);
	make_side(o, &o->side[0]);
	make_side(o, &o->side[1]);
	connect(o, &o->side[0], o->side[1].qpn);
	connect(o, &o->side[1], o->side[0].qpn);
}

/* ---- what a program may write --------------------------------------- */

/* Well-formed enough to get past the first check; the input is the body. */
static void put_slot(struct owner *o, struct side *s, uint8_t pick,
		     const uint8_t *body, size_t len)
{
	struct sf_send_line *line = at(s->mem.queues + s->mem.line);
	uint64_t index = (line->word & SF_LINE_INDEX_MASK) + (pick & 3);
	uint64_t mask = (1u << LOG_DEPTH) - 1;
	uint8_t *slot =
		at(s->mem.queues + s->mem.sq + ((index & mask) << LOG_STRIDE));
	struct sf_wqe *wqe = (struct sf_wqe *)slot;

	memcpy(slot, body, len < 128 ? len : 128);
	wqe->commit = (wqe->commit & 0xffffffff) |
		      (uint64_t)sf_lap(index, LOG_DEPTH) << SF_COMMIT_LAP_SHIFT;
	if (pick & 0x10) /* a good remote side */
		wqe->rkey = o->key, wqe->remote_addr = 0x10000;
	if (pick & 0x20) /* a good first entry */
		wqe->sge0 = (struct sf_sge){0x10000, wqe->sge0.length % MEM,
					    o->key};
	if (pick & 0x40)
		rnic_sq_ring(&r, s->qpn);
}

static void put_receive(struct owner *o, struct side *s, uint8_t pick,
			const uint8_t *body, size_t len)
{
	struct sf_doorbell *db = at(s->mem.doorbells + 64);
	uint64_t mask = (1u << LOG_DEPTH) - 1;
	uint8_t *slot =
		at(s->mem.queues + s->mem.rq + ((db->value & mask) << 6));
	struct sf_rq_desc *desc = (struct sf_rq_desc *)slot;

	memcpy(slot, body, len < 64 ? len : 64);
	if (pick & 0x10) {
		struct sf_sge sge = {0x10000, MEM, o->key};

		desc->n_sge = 1;
		memcpy(desc + 1, &sge, sizeof(sge));
	}
	db->value++;
	if (pick & 0x40)
		rnic_rq_ring(&r, s->qpn);
}

/* Garbage anywhere in the pages that the program has mapped. */
static void scribble(struct owner *o, struct side *s, uint8_t pick,
		     const uint8_t *body, size_t len)
{
	const struct {
		uint64_t off, len;
	} pages[] = {
		{s->mem.queues, s->mem.queues_len},
		{s->mem.doorbells, RNIC_PAGE},
		{o->cq.ring, o->cq.ring_len},
		{o->cq.ctrl, RNIC_PAGE},
	};
	uint64_t off, n = pages[pick & 3].len;

	if (len < 3)
		return;
	off = (body[0] | body[1] << 8) % n;
	len -= 2;
	if (len > n - off)
		len = n - off;
	memcpy(at(pages[pick & 3].off + off), body + 2, len);
}

static void poll(struct owner *o)
{
	struct sf_cq_ctrl *ctrl = at(o->cq.ctrl);

	ctrl->consumer = r.sh->cq[o->cqn].producer;
}

static void step(struct owner *o, uint8_t what, uint8_t pick,
		 const uint8_t *body, size_t len)
{
	struct side *s = &o->side[what >> 4 & 1];

	switch (what & 7) {
	case 0:
	case 1:
		put_slot(o, s, pick, body, len);
		break;
	case 2:
		put_receive(o, s, pick, body, len);
		break;
	case 3:
		scribble(o, s, pick, body, len);
		break;
	case 4:
		rnic_sq_ring(&r, s->qpn);
		rnic_rq_ring(&r, s->qpn);
		break;
	case 5:
		rnic_cq_arm(&r, o->cqn);
		break;
	case 6:
		poll(o);
		break;
	default:
		rnic_tick(&r, clock_ns += 1000000000);
	}
}

/* ---- promises ------------------------------------------------------- */

static void check_canaries(const struct owner *o)
{
	const uint8_t *before = at(o->buf - RNIC_PAGE),
		      *after = at(o->buf + MEM);
	uint32_t i;

	for (i = 0; i < RNIC_PAGE; i++)
		assert(before[i] == CANARY && after[i] == CANARY);
}

static void check_bystander(struct owner *o)
{
	struct side *s = &o->side[0];
	struct sf_send_line *line = at(s->mem.queues + s->mem.line);
	uint64_t index = line->word & SF_LINE_INDEX_MASK;
	uint8_t *slot =
		at(s->mem.queues + s->mem.sq + ((index & 7) << LOG_STRIDE));
	struct sf_wqe *wqe = (struct sf_wqe *)slot;

	*(uint64_t *)at(o->buf) = 0x1122334455667788;
	*(uint64_t *)at(o->buf + 64) = 0;
	wqe->remote_addr = 0x10000 + 64;
	wqe->rkey = o->key;
	wqe->sge0 = (struct sf_sge){0x10000, 8, o->key};
	wqe->commit =
		sf_commit(SF_OP_WRITE, 1, SF_WQE_SIGNALED, index, LOG_DEPTH);
	rnic_sq_ring(&r, s->qpn);
	assert(line->word == index + 1);
	assert(*(uint64_t *)at(o->buf + 64) == 0x1122334455667788);
	poll(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rnic_config config = {
		.devices = 1,
		.ports = 1,
		.link_layer = RNIC_INFINIBAND,
		.mtu = RNIC_MTU_4096,
		.guid = 0x0200000000000000,
		.name = "fuzz",
	};
	struct owner victim, bystander;
	uint32_t n;

	if (!r.sh) {
		void *base = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				  -1, 0);

		assert(base != MAP_FAILED);
		assert(!rnic_create(&r, base, ARENA, &config, &ops, NULL));
	}
	next_page = RNIC_ARENA_DYNAMIC;
	make_owner(&victim, VICTIM);
	make_owner(&bystander, BYSTANDER);
	/* what, pick, length, body */
	for (n = 0; size >= 3 && n < 64; n++) {
		size_t len = data[2] < size - 3 ? data[2] : size - 3;

		step(&victim, data[0], data[1], data + 3, len);
		data += 3 + len;
		size -= 3 + len;
	}
	check_bystander(&bystander);
	check_canaries(&victim);
	check_canaries(&bystander);
	assert(rnic_ctx_reap(&r, VICTIM));
	assert(rnic_ctx_reap(&r, BYSTANDER));
	/* Numbers rotate, and what walks the tables gets slower with it. */
	r.sh->pds = r.sh->keys = r.sh->cqs = (struct rnic_pool){0};
	r.sh->srqs = r.sh->qps = r.sh->ahs = (struct rnic_pool){0};
	return 0;
}
