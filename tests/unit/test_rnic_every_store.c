// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process dies after any of its stores.
 *
 * An operation is executed once under the CPU's trap flag; after each
 * instruction that changed anything the change is noted.  Then, for each of
 * these points, the world is put back to how it was there, every lock that was
 * held has lost its holder, and the survivors go on.  They must get where the
 * undisturbed operation got: all is done exactly once.  The one who repairs may
 * die after any of its stores, too.
 *
 * What the host does (locks, time, events, pages) is one step each.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "rnic_fixture.h"

/* ---- the world ------------------------------------------------------ */

struct region {
	char *at;
	size_t len;
	size_t first; /* of its bytes among those of all regions */
};

#define MAX_REGIONS 12
#define MAX_CHANGES 65536
#define MAX_STOPS 8192

struct change {
	uint32_t at; /* word of the world */
	uint64_t value;
};

/* Between two instructions. */
struct stop {
	uint32_t changes; /* so many had happened */
	uintptr_t ip;
};

/* What happened, step by step. */
struct log {
	char *first, *last; /* copies of the world: at the start, by now */
	struct change change[MAX_CHANGES];
	uint32_t changes;
	struct stop stop[MAX_STOPS];
	uint32_t stops;
};

static struct {
	struct region region[MAX_REGIONS];
	uint32_t regions;
	size_t len;
	volatile uint64_t steps;
} world;

/* Of the operation, and of a repair after it. */
static struct log logs[2], *log_now = &logs[0];

static void world_add(void *at, size_t len)
{
	assert_true(world.regions < MAX_REGIONS);
	assert_int_equal((uintptr_t)at % 8 | len % 8, 0);
	world.region[world.regions++] = (struct region){at, len, world.len};
	world.len += len;
}

static void log_forget(struct log *l)
{
	free(l->first);
	free(l->last);
	l->first = l->last = NULL;
	l->changes = l->stops = 0;
}

static void world_forget(void)
{
	log_forget(&logs[0]);
	log_forget(&logs[1]);
	log_now = &logs[0];
	world.regions = 0;
	world.len = 0;
}

static void log_begin(struct log *l)
{
	uint32_t i;

	log_forget(l);
	l->first = malloc(world.len);
	l->last = malloc(world.len);
	assert_true(l->first && l->last);
	for (i = 0; i < world.regions; i++)
		memcpy(l->first + world.region[i].first, world.region[i].at,
		       world.region[i].len);
	memcpy(l->last, l->first, world.len);
	log_now = l;
}

/* The world as it was at @stop. */
static void log_restore(struct log *l, uint32_t stop)
{
	uint32_t i;

	memcpy(l->last, l->first, world.len);
	for (i = 0; i < l->stop[stop].changes; i++)
		memcpy(l->last + l->change[i].at * 8ul, &l->change[i].value, 8);
	for (i = 0; i < world.regions; i++)
		memcpy(world.region[i].at, l->last + world.region[i].first,
		       world.region[i].len);
}

static void note_changes(struct log *l, const struct region *r)
{
	size_t i;

	for (i = 0; i < r->len; i += 8) {
		char *last = l->last + r->first + i;

		if (!memcmp(last, r->at + i, 8) || l->changes == MAX_CHANGES)
			continue;
		memcpy(last, r->at + i, 8);
		l->change[l->changes].at = (r->first + i) / 8;
		memcpy(&l->change[l->changes++].value, last, 8);
	}
}

static void look(struct log *l, uintptr_t ip)
{
	uint32_t before = l->changes, i;

	world.steps++;
	for (i = 0; i < world.regions; i++) {
		const struct region *r = &world.region[i];

		if (memcmp(r->at, l->last + r->first, r->len))
			note_changes(l, r);
	}
	if (l->changes != before && l->stops < MAX_STOPS)
		l->stop[l->stops++] = (struct stop){l->changes, ip};
}

/* ---- steps ---------------------------------------------------------- */

#if defined(__x86_64__)
#define TRAP_FLAG 0x100ull

static void on_step(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	look(log_now, ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
}

static void steps_on(void)
{
	__writeeflags(__readeflags() | TRAP_FLAG);
}

static bool steps_off(void)
{
	uint64_t flags = __readeflags();

	__writeeflags(flags & ~TRAP_FLAG);
	return flags & TRAP_FLAG;
}
#else
static void on_step(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
}

static void steps_on(void)
{
}

static bool steps_off(void)
{
	return false;
}
#endif

/* A debugger, valgrind or another kind of CPU may keep the steps from us. */
static bool steps_work(void)
{
	uint64_t before = world.steps;

	steps_on();
	steps_off();
	return world.steps > before;
}

/* The fixture's host, out of sight. */
#define AS_ONE_STEP(type, call)        \
	do {                           \
		bool on = steps_off(); \
		type result = call;    \
                                       \
		if (on)                \
			steps_on();    \
		return result;         \
	} while (0)
#define AS_ONE_STEP_VOID(call)         \
	do {                           \
		bool on = steps_off(); \
                                       \
		call;                  \
		if (on)                \
			steps_on();    \
	} while (0)

static const struct rnic_host_ops *ops_of(void *host)
{
	return &((struct fx_view *)host)->fx->ops;
}

static uint64_t step_now(void *host)
{
	AS_ONE_STEP(uint64_t, ops_of(host)->now(host));
}

static void step_lock_init(void *host, struct rnic_lock *lock)
{
	AS_ONE_STEP_VOID(ops_of(host)->lock_init(host, lock));
}

static enum rnic_lock_result step_trylock(void *host, struct rnic_lock *lock)
{
	AS_ONE_STEP(enum rnic_lock_result, ops_of(host)->trylock(host, lock));
}

static enum rnic_lock_result step_lock(void *host, struct rnic_lock *lock)
{
	AS_ONE_STEP(enum rnic_lock_result, ops_of(host)->lock(host, lock));
}

static void step_unlock(void *host, struct rnic_lock *lock)
{
	AS_ONE_STEP_VOID(ops_of(host)->unlock(host, lock));
}

static enum rnic_copy_result step_copy(void *host, const struct rnic_ref *dst,
				       const struct rnic_ref *src)
{
	AS_ONE_STEP(enum rnic_copy_result, ops_of(host)->copy(host, dst, src));
}

static void step_event(void *host, const struct rnic_event *event)
{
	AS_ONE_STEP_VOID(ops_of(host)->event(host, event));
}

static void step_timer(void *host, uint64_t deadline)
{
	AS_ONE_STEP_VOID(ops_of(host)->timer(host, deadline));
}

static uint64_t step_alloc(void *host, uint64_t len)
{
	AS_ONE_STEP(uint64_t, ops_of(host)->mem_alloc(host, len));
}

static void step_free(void *host, uint64_t off, uint64_t len)
{
	AS_ONE_STEP_VOID(ops_of(host)->mem_free(host, off, len));
}

static const struct rnic_host_ops step_ops = {
	.now = step_now,
	.lock_init = step_lock_init,
	.trylock = step_trylock,
	.lock = step_lock,
	.unlock = step_unlock,
	.copy = step_copy,
	.event = step_event,
	.timer = step_timer,
	.mem_alloc = step_alloc,
	.mem_free = step_free,
};

/* ---- two processes -------------------------------------------------- */

/*
 * Process 1 has a and c, process 2 b and d; a is connected to b, c to d.  The
 * two of a process share its CQs.
 */
enum {
	A,
	B,
	C,
	D,
	ENDS
};
enum {
	SEND,
	RECV,
	SIDES
};

#define MAX_WR 4
#define MAX_GOT 64
#define GRH 40
#define CQ_LOG_DEPTH 3
#define FAR_LEN 64

/* Where things lie in a's and b's region, by index. */
#define CHUNK 640
#define SOURCE(i) ((i)*CHUNK)
#define BUFFER(i) (3 * CHUNK + (i)*CHUNK)
#define TARGET(i) (4096 + (i)*CHUNK)
#define NUMBER(i) (4096 + 3 * CHUNK + (i)*8)
#define RESULT(i) (4096 + 3 * CHUNK + 64 + (i)*CHUNK)
#define REGION 8192

#define WIRE_QUEUE 8

/* What a link that answers later carries. */
struct wire_packet {
	struct rnic_packet pkt;
	uint8_t bytes[256];
};

/* All completions that somebody got, in order. */
struct got {
	uint32_t n;
	struct sf_cqe cqe[MAX_GOT];
};

struct rig {
	struct fx fx;
	struct fx_end end[ENDS];
	struct fx_mr mr[2]; /* of a, of b */
	struct fx_mr far;   /* of b, where only the host can go */
	uint32_t window[2]; /* of a, of b: type 2 */
	uint32_t ah[2];	    /* from process 1 to 2, and back */
	uint32_t xrcd;
	struct fx_srq srq;	/* where b's receives are, if it is there */
	uint64_t first[ENDS];	/* WR index */
	uint32_t flags[MAX_WR]; /* of a's WRs */
	struct got got[ENDS][SIDES];
	struct rnic_link_ops link;
	struct wire_packet wire[WIRE_QUEUE]; /* on their way, either way */
	uint32_t wired;
	uint32_t recvs;
};

static struct rig rig;

/* How it was when all had ended that nobody disturbed. */
struct outcome {
	struct got got[ENDS][SIDES];
	struct sf_send_line line[ENDS];
	struct rnic_qp qp[ENDS];
	char mr[2][REGION];
	char far[FAR_LEN];
	struct rnic_mr window[2];
	unsigned int events;
	struct rnic_event event[FX_MAX_EVENTS];
};

static struct outcome want, have;

/* What the survivors do about a death. */
enum way {
	BY_DAEMON,	/* it notices at once */
	BY_OTHERS,	/* they come by before it does */
	AFTER_A_LAP,	/* they have used the CQs for a while before it does */
	WITH_PROCESS_1, /* its objects go, too */
	WITH_PROCESS_2,
	WITH_DAEMON, /* it was the daemon: the device is lost */
	WAYS
};

static const char *const way_names[] = {
	"by the daemon",  "by others",	    "after a lap",
	"process 1 gone", "process 2 gone", "daemon gone",
};

#define EXECUTED_BY_1                                            \
	(1u << BY_DAEMON | 1u << BY_OTHERS | 1u << AFTER_A_LAP | \
	 1u << WITH_PROCESS_1)
#define EXECUTED_BY_2                                            \
	(1u << BY_DAEMON | 1u << BY_OTHERS | 1u << AFTER_A_LAP | \
	 1u << WITH_PROCESS_2)
#define EXECUTED_BY_ANY (EXECUTED_BY_1 | EXECUTED_BY_2 | 1u << WITH_DAEMON)

#define SURVIVED_BY_BOTH (1u << BY_DAEMON | 1u << BY_OTHERS | 1u << AFTER_A_LAP)

enum fault {
	SOUND,
	BAD_LKEY,
	BAD_RKEY,
	TOO_LONG,
	FAR, /* not a fault: works on memory that only the host reaches */
};

struct request {
	uint32_t opcode, flags, len;
	uint8_t fault;
};

struct scenario {
	const char *name;
	struct request wr[MAX_WR];
	uint32_t wrs;
	uint32_t recvs;
	bool bad_recv;
	uint32_t type;	/* of all QPs, 0: RC; XRC_SEND: from a to b, else RC */
	bool srq;	/* b has one */
	bool lossy;	/* messages may be lost, but none comes twice */
	uint32_t ways;	/* bits of enum way; 0: EXECUTED_BY_1 */
	uint32_t burst; /* payload bytes in one packet, 0: the link's */
	bool wire;	/* the link answers later */
	bool inline_recv, timestamps;
	bool twice;	   /* who repairs dies, too */
	bool overrun;	   /* of a's send CQ: it is of no more use */
	uint8_t rnr_retry; /* 0: for ever, else one less */
	void (*arrange)(struct rig *g);
	void (*act)(struct rig *g);   /* NULL: ring a's send queue */
	void (*later)(struct rig *g); /* by survivors, whatever happened */
};

static struct rnic_qp *qp_of(struct rig *g, uint32_t e)
{
	return fx_qp(&g->end[e]);
}

static bool qp_lives(struct rig *g, uint32_t e)
{
	return qp_of(g, e)->qpn == g->end[e].qpn;
}

/* Another QP on the CQs of @of. */
static void end_beside(struct fx_end *e, const struct fx_end *of)
{
	*e = *of;
	assert_int_equal(
		rnic_qp_create(e->r, e->ctx, &e->init, &e->qpn, &e->mem), 0);
	e->sq_next = e->mem.sq_start;
	e->rq_next = e->mem.rq_start;
}

static void connect_both(struct fx_end *x, struct fx_end *y,
			 const struct fx_opts *o)
{
	fx_connect(x, y, RNIC_RTS, o, o->psn, o->psn + 0x1000);
	fx_connect(y, x, RNIC_RTS, o, o->psn + 0x1000, o->psn);
}

static struct fx_opts opts_of(const struct scenario *s)
{
	struct fx_opts o = fx_defaults;

	o.mtu = RNIC_MTU_256;
	o.sq_log_depth = 2;
	o.rq_log_depth = 2;
	o.cq_log_depth = CQ_LOG_DEPTH;
	o.inline_recv = s->inline_recv;
	o.timestamps = s->timestamps;
	o.psn = 0xfffffe; /* wraps on the way */
	if (s->type != RNIC_QPT_XRC_SEND)
		o.type = s->type;
	if (s->rnr_retry)
		o.rnr_retry = s->rnr_retry - 1;
	return o;
}

static void watch(struct rig *g)
{
	struct rnic_shared *sh = g->fx.r->sh;

	world_forget();
	world_add(g, sizeof(*g));
	world_add(&sh->pds, (char *)&sh->pd[8] - (char *)&sh->pds);
	world_add(sh->device, 2 * sizeof(sh->device[0]));
	world_add(sh->mr, 8 * sizeof(sh->mr[0]));
	world_add(sh->cq, 12 * sizeof(sh->cq[0]));
	world_add(sh->qp, 6 * sizeof(sh->qp[0]));
	world_add(sh->srq, 2 * sizeof(sh->srq[0]));
	world_add(sh->qp_ref, 2 * sizeof(sh->qp_ref[0]));
	world_add(sh->xrcd, 2 * sizeof(sh->xrcd[0]));
	world_add(sh->ah, 4 * sizeof(sh->ah[0]));
	world_add(rnic_at(g->fx.r, RNIC_ARENA_DYNAMIC), 27 * RNIC_PAGE);
	world_add(g->fx.far, FAR_LEN);
	log_begin(&logs[0]);
}

/* Who gets what @x sends. */
static void address(const struct rig *g, struct fx_wr *wr, uint32_t x,
		    uint32_t y)
{
	wr->srqn = g->srq.srqn;
	if (g->end[x].init.type != RNIC_QPT_UD)
		return;
	wr->remote_addr = (uint64_t)g->end[y].qpn << 32 | g->ah[x & 1];
	wr->rkey = FX_QKEY;
}

static struct fx_wr wr_of(const struct rig *g, uint32_t i,
			  const struct request *q)
{
	const struct fx_mr *am = &g->mr[A], *bm = &g->mr[B];
	struct fx_wr wr = {
		.opcode = q->opcode,
		.flags = q->flags,
		.remote_addr = bm->addr + TARGET(i),
		.rkey = bm->key,
		.imm = 0x1000 + i,
		.n_sge = 1,
		.sge = {fx_sge(am, SOURCE(i), q->len)},
	};

	switch (q->opcode) {
	case SF_OP_NOP:
		wr.n_sge = 0;
		break;
	case SF_OP_BIND_MW:
		wr.n_sge = 0;
		wr.rkey = g->window[A] + i;
		wr.imm = am->key;
		wr.remote_addr = am->addr + 64 * i;
		wr.bind = (struct sf_bind){.length = 64 + i,
					   .access = SF_ACCESS_REMOTE_READ};
		break;
	case SF_OP_LOCAL_INV:
		wr.n_sge = 0;
		wr.imm = g->window[A];
		break;
	case SF_OP_SEND_INV:
		wr.imm = g->window[B];
		break;
	case SF_OP_ATOMIC_WRITE:
		wr.remote_addr = bm->addr + NUMBER(i);
		break;
	case SF_OP_READ:
		wr.sge[0] = fx_sge(am, RESULT(i), q->len);
		break;
	case SF_OP_ATOMIC_CAS:
	case SF_OP_ATOMIC_FADD:
		wr.sge[0] = fx_sge(am, RESULT(i), 8);
		wr.remote_addr = bm->addr + NUMBER(i);
		wr.arg0 = 5;
		wr.arg1 = 100 + i;
	}
	if (q->flags & SF_WQE_SIGNAL) {
		wr.arg0 = bm->addr + NUMBER(i);
		wr.arg1 = bm->key | 3ull << 32;
	}
	address(g, &wr, A, B);
	if (q->fault == BAD_LKEY)
		wr.sge[0].lkey ^= 1;
	if (q->fault == BAD_RKEY)
		wr.rkey ^= 1;
	if (q->fault == FAR) {
		wr.remote_addr = g->far.addr;
		wr.rkey = g->far.key;
	}
	return wr;
}

static bool has_srq(const struct rig *g, uint32_t e)
{
	return e == B && g->srq.srqn;
}

/* The producer index of where @e's receives are, and the next descriptor. */
static struct sf_doorbell *recv_slot(struct rig *g, uint32_t e,
				     struct sf_rq_desc **desc, uint64_t **next)
{
	struct fx_end *end = &g->end[e];
	const struct fx_srq *srq = &g->srq;
	struct sf_doorbell *db;
	uint64_t slot;

	if (has_srq(g, e)) {
		*next = &g->srq.next;
		slot = **next & ((1ull << srq->attr.log_depth) - 1);
		*desc = rnic_at(srq->r,
				srq->mem.ring + (slot << srq->attr.log_stride));
		return rnic_at(srq->r, srq->mem.doorbell);
	}
	*next = &end->rq_next;
	slot = **next & ((1ull << end->init.rq_log_depth) - 1);
	*desc = rnic_at(end->r, end->mem.queues + end->mem.rq +
					(slot << end->init.rq_log_stride));
	db = rnic_at(end->r, end->mem.doorbells);
	return &db[1];
}

/* Like fx_recv(), but does not ring. */
static void recv_quietly(struct rig *g, uint32_t e, uint32_t cookie, bool bad)
{
	struct fx_mr *mr = &g->mr[e & 1];
	struct sf_sge sge = fx_sge(mr, BUFFER(cookie < 2 ? cookie : 2), CHUNK);
	struct sf_rq_desc *desc;
	uint64_t *next;
	struct sf_doorbell *db = recv_slot(g, e, &desc, &next);

	if (bad)
		sge.lkey ^= 1;
	desc->cookie = cookie;
	desc->n_sge = e == B || g->end[e].init.type == RNIC_QPT_UD;
	memcpy(desc + 1, &sge, sizeof(sge));
	++*next;
	__atomic_store_n(&db->value, *next, __ATOMIC_RELEASE);
}

static void ring_receives(struct rig *g, uint32_t e)
{
	if (has_srq(g, e))
		rnic_srq_ring(g->fx.r, g->srq.srqn);
	else
		rnic_rq_ring(g->fx.r, g->end[e].qpn);
}

/* ---- a wire --------------------------------------------------------- */

static enum rnic_copy_result wire_put(const struct rnic_packet *pkt)
{
	struct wire_packet *w = &rig.wire[rig.wired];
	enum rnic_copy_result res = RNIC_COPY_OK;
	struct rnic_sgl raw;

	assert_true(rig.wired < WIRE_QUEUE);
	assert_true(!pkt->payload || pkt->len <= sizeof(w->bytes));
	rnic_sgl_init(&raw);
	rnic_sgl_add(&raw, NULL, (uintptr_t)w->bytes, sizeof(w->bytes));
	if (pkt->payload)
		res = rnic_sgl_copy(rig.fx.r, &raw, 0, pkt->payload,
				    pkt->payload_off, pkt->len);
	w->pkt = *pkt;
	w->pkt.sink = NULL;
	rig.wired += !res;
	return res;
}

static enum rnic_link_result wire_send(struct rnic_call *call,
				       struct rnic_qp *qp,
				       const struct rnic_packet *pkt,
				       struct rnic_packet *answer)
{
	bool on = steps_off();

	(void)call;
	(void)qp;
	(void)answer;
	wire_put(pkt);
	if (on)
		steps_on();
	return RNIC_LINK_SENT;
}

static const struct rnic_link_ops wire = {
	.window = 3,
	.send = wire_send,
};

static enum rnic_copy_result wire_answer(struct rnic_reply *reply,
					 const struct rnic_packet *answer)
{
	(void)reply;
	AS_ONE_STEP(enum rnic_copy_result, wire_put(answer));
}

static struct wire_packet wire_take(void)
{
	bool on = steps_off();
	struct wire_packet w = rig.wire[0];

	memmove(rig.wire, rig.wire + 1, --rig.wired * sizeof(w));
	if (on)
		steps_on();
	return w;
}

/* The next packet arrives. */
static void wire_deliver(struct rig *g)
{
	struct wire_packet w = wire_take();
	struct rnic_qp *qp = rnic_qp_get(g->fx.r, w.pkt.dest_qpn);
	struct rnic_reply reply = {wire_answer};
	struct rnic_call call;
	struct rnic_sgl raw;

	if (!qp)
		return;
	rnic_sgl_init(&raw);
	rnic_sgl_add(&raw, NULL, (uintptr_t)w.bytes, sizeof(w.bytes));
	if (w.pkt.payload)
		w.pkt.payload = &raw;
	w.pkt.payload_off = 0;
	rnic_call_begin(&call, g->fx.r);
	if (w.pkt.op >= RNIC_PKT_ACK) {
		rnic_requester_receive(&call, qp, &w.pkt);
	} else if (rnic_responder_lock(g->fx.r, qp)) {
		rnic_responder_receive(&call, qp, &w.pkt, &reply);
		rnic_responder_unlock(&call, qp);
	}
	rnic_call_end(&call);
}

static void wire_run(struct rig *g)
{
	while (g->wired)
		wire_deliver(g);
}

/* What is on its way arrives, and timers run, until there is nothing left. */
static void settle(struct rig *g)
{
	uint32_t i;

	wire_run(g);
	for (i = 0; i < 50 && fx_next_timer(&g->fx); i++)
		wire_run(g);
}

/* b of XRC: a target, of a domain with an SRQ that completes in d's CQ. */
static void make_target(struct rig *g, const struct fx_end *d)
{
	const struct rnic_xrcd_attr attr = {.dev = 1, .create = 1};
	struct fx_end *b = &g->end[B];

	assert_int_equal(rnic_xrcd_open(g->fx.r, 2, &attr, &g->xrcd), 0);
	fx_xsrq_new(&g->srq, &g->fx, 2, 1, d->pdn, 2, g->xrcd, &d->rcq);
	fx_target_new(b, &g->fx, g->fx.r, 2, 1, g->xrcd);
	b->pdn = d->pdn;
	b->scq = d->scq;
	b->rcq = d->rcq;
}

static void make_ends(struct rig *g, const struct scenario *s,
		      const struct fx_opts *o)
{
	struct fx_opts first = *o;
	struct fx_end with_srq;

	if (s->type == RNIC_QPT_XRC_SEND)
		first.type = s->type;
	fx_end_new(&g->end[A], &g->fx, g->fx.r, 1, 0, &first);
	if (!s->srq && s->type != RNIC_QPT_XRC_SEND) {
		fx_end_new(&g->end[B], &g->fx, g->fx.r, 2, 1, o);
		end_beside(&g->end[C], &g->end[A]);
		end_beside(&g->end[D], &g->end[B]);
		return;
	}
	fx_end_new(&g->end[D], &g->fx, g->fx.r, 2, 1, o);
	with_srq = g->end[A];
	with_srq.init.type = g->end[D].init.type;
	with_srq.init.recv_cqn = with_srq.rcq.cqn;
	with_srq.init.rq_log_depth = o->rq_log_depth;
	with_srq.init.rq_log_stride = o->rq_log_stride;
	end_beside(&g->end[C], &with_srq);
	if (s->type == RNIC_QPT_XRC_SEND) {
		make_target(g, &g->end[D]);
		return;
	}
	fx_srq_new(&g->srq, &g->fx, 2, 1, g->end[D].pdn, 2);
	with_srq = g->end[D];
	with_srq.init.srqn = g->srq.srqn;
	with_srq.init.rq_log_depth = with_srq.init.rq_log_stride = 0;
	end_beside(&g->end[B], &with_srq);
}

static void rig_open(struct rig *g, const struct scenario *s)
{
	struct fx_opts o = opts_of(s);
	uint32_t i;

	memset(g, 0, sizeof(*g));
	fx_open(&g->fx, RNIC_INFINIBAND);
	g->fx.r->ops = &step_ops;
	g->link = *g->fx.r->links[RNIC_LINK_DIRECT];
	if (s->burst)
		g->link.burst = s->burst;
	if (s->wire)
		g->link = wire;
	g->fx.r->links[RNIC_LINK_DIRECT] = &g->link;
	make_ends(g, s, &o);
	connect_both(&g->end[A], &g->end[B], &o);
	connect_both(&g->end[C], &g->end[D], &o);
	g->mr[A] = fx_mr(&g->end[A], REGION, FX_ALL_ACCESS | RNIC_MW_BIND);
	g->mr[B] = fx_mr(&g->end[B], REGION, FX_ALL_ACCESS | RNIC_MW_BIND);
	g->far = fx_mr_far(&g->end[B], 0, FAR_LEN, FX_ALL_ACCESS);
	for (i = A; i <= B && s->type == RNIC_QPT_UD; i++)
		g->ah[i] = fx_ah(&g->end[i], &g->end[i ^ 1], false);
	for (i = A; i <= B; i++)
		assert_int_equal(rnic_mw_create(g->fx.r, g->end[i].ctx,
						g->end[i].pdn, 2,
						&g->window[i]),
				 0);
	fx_fill(g->mr[A].ptr, BUFFER(0), 1);
	fx_fill(g->mr[B].ptr + TARGET(0), NUMBER(0) - TARGET(0), 2);
	for (i = 0; i < MAX_WR; i++)
		*(uint64_t *)(g->mr[B].ptr + NUMBER(i)) = 100 + i;
	for (i = 0; i < ENDS; i++)
		g->first[i] = g->end[i].sq_next;
	g->recvs = s->recvs;
	for (i = 0; i < s->recvs; i++)
		recv_quietly(g, B, i, s->bad_recv);
	for (i = 0; i < s->wrs; i++) {
		struct fx_wr wr = wr_of(g, i, &s->wr[i]);

		g->flags[i] = wr.flags;
		fx_post(&g->end[A], &wr);
	}
	if (s->arrange)
		s->arrange(g);
	watch(g);
}

/* ---- what there is to be seen --------------------------------------- */

static void take_cqe(struct rig *g, const struct sf_cqe *cqe)
{
	uint32_t e, side = sf_cqe_opcode(cqe->word) & 0x80 ? RECV : SEND;
	struct got *got;

	for (e = 0; e < ENDS && g->end[e].qpn != cqe->qpn; e++)
		;
	assert_true(e < ENDS);
	got = &g->got[e][side];
	assert_true(got->n < MAX_GOT);
	got->cqe[got->n++] = *cqe;
}

static void drain_cq(struct rig *g, struct fx_cq *cq)
{
	struct sf_cqe cqe;

	while (fx_poll(cq, &cqe))
		take_cqe(g, &cqe);
	/* No hole: all that was produced was there. */
	assert_int_equal(cq->consumer, fx_cq_state(cq)->producer);
}

static void drain(struct rig *g)
{
	uint32_t e;

	for (e = A; e <= B; e++) {
		if (fx_cq_state(&g->end[e].scq)->live)
			drain_cq(g, &g->end[e].scq);
		if (fx_cq_state(&g->end[e].rcq)->live)
			drain_cq(g, &g->end[e].rcq);
	}
}

static void see(struct rig *g, struct outcome *o)
{
	uint32_t e;

	memcpy(o->got, g->got, sizeof(o->got));
	for (e = 0; e < ENDS; e++) {
		o->line[e] = *fx_line(&g->end[e]);
		o->qp[e] = *qp_of(g, e);
	}
	memcpy(o->mr[A], g->mr[A].ptr, REGION);
	memcpy(o->mr[B], g->mr[B].ptr, REGION);
	memcpy(o->far, g->fx.far, FAR_LEN);
	for (e = A; e <= B; e++)
		o->window[e] = g->fx.r->sh->mr[SF_KEY_INDEX(g->window[e])];
	o->events = g->fx.events;
	memcpy(o->event, g->fx.event, sizeof(o->event));
}

static bool is_remote_error(uint32_t status)
{
	return status == SF_ST_REM_ACCESS_ERR || status == SF_ST_REM_OP_ERR ||
	       status == SF_ST_REM_INV_REQ_ERR;
}

/* A NAK that was lost with its reader: nobody answers any more. */
static bool nak_lost(uint32_t want_status, uint32_t status)
{
	return is_remote_error(want_status) && status == SF_ST_RETRY_EXC_ERR;
}

static void same_cqe(const struct sf_cqe *w, const struct sf_cqe *h)
{
	const uint64_t lap = 0xffull << SF_CQE_LAP_SHIFT;

	assert_int_equal(h->wr, w->wr);
	assert_int_equal(h->src_qpn, w->src_qpn);
	assert_int_equal(sf_cqe_opcode(h->word), sf_cqe_opcode(w->word));
	if (nak_lost(sf_cqe_status(w->word), sf_cqe_status(h->word)))
		return;
	assert_int_equal(h->word & ~lap, w->word & ~lap);
	assert_memory_equal(h->data, w->data, sizeof(h->data));
	assert_int_equal(h->byte_len, w->byte_len);
	assert_int_equal(h->imm, w->imm);
}

static void same_got(const struct got *w, const struct got *h)
{
	uint32_t i;

	for (i = 0; i < h->n && i < w->n; i++)
		same_cqe(&w->cqe[i], &h->cqe[i]);
	assert_int_equal(h->n, w->n);
}

static void same_line(const struct sf_send_line *w,
		      const struct sf_send_line *h)
{
	assert_int_equal(h->word, w->word);
	assert_int_equal(h->failed, w->failed);
	if (nak_lost(w->status, h->status))
		return;
	assert_int_equal(h->status, w->status);
	assert_int_equal(h->syndrome, w->syndrome);
}

static const struct rnic_position *una(const struct rnic_qp *qp)
{
	return &qp->req.una[qp->req.una_sel & 1];
}

static void same_qp(const struct rnic_qp *w, const struct rnic_qp *h)
{
	assert_int_equal(h->qpn, w->qpn);
	assert_int_equal(h->state, w->state);
	assert_int_equal(una(h)->index, una(w)->index);
	if (w->state != RNIC_ERR && w->state != RNIC_SQE)
		assert_int_equal(una(h)->psn, una(w)->psn);
	assert_int_equal(h->req.cur, w->req.cur);
	assert_int_equal(h->req.wait, w->req.wait);
	assert_int_equal(h->req.reads, w->req.reads);
	assert_int_equal(h->req.fail_status, w->req.fail_status);
	assert_int_equal(h->req.intent.set, 0);
	assert_int_equal(h->resp.epsn, w->resp.epsn);
	assert_int_equal(h->resp.msn, w->resp.msn);
	assert_int_equal(h->resp.rq_head, w->resp.rq_head);
	assert_int_equal(h->resp.rq_done, w->resp.rq_done);
	assert_int_equal(h->resp.atomics, w->resp.atomics);
	assert_int_equal(h->resp.in_message, w->resp.in_message);
	assert_int_equal(h->resp.intent.set, 0);
}

static uint32_t count_events(const struct outcome *o,
			     const struct rnic_event *event)
{
	uint32_t i, n = 0;

	for (i = 0; i < o->events; i++)
		n += o->event[i].type == event->type &&
		     o->event[i].number == event->number;
	return n;
}

/*
 * None is lost.  One that was told before its teller died, but not noted as
 * told, comes once more.
 */
static void same_events(const struct outcome *w, const struct outcome *h,
			bool traffic)
{
	uint32_t i;

	for (i = 0; i < w->events; i++)
		assert_true(count_events(h, &w->event[i]) >=
			    count_events(w, &w->event[i]));
	for (i = 0; !traffic && i < h->events; i++)
		assert_true(count_events(w, &h->event[i]));
	if (!traffic)
		assert_true(h->events <= w->events + 1);
}

static void same_window(const struct rnic_mr *w, const struct rnic_mr *h)
{
	assert_int_equal(h->key, w->key);
	if (!w->key)
		return;
	assert_int_equal(h->access, w->access);
	assert_int_equal(h->qpn, w->qpn);
	assert_int_equal(h->parent, w->parent);
	assert_int_equal(h->iova, w->iova);
	assert_int_equal(h->addr, w->addr);
	assert_int_equal(h->len, w->len);
	assert_memory_equal(h->seg, w->seg, sizeof(w->seg));
}

static void same_outcome(const struct outcome *w, const struct outcome *h,
			 bool traffic)
{
	uint32_t e, last = traffic ? B : D;

	for (e = 0; e <= last; e++) {
		same_got(&w->got[e][SEND], &h->got[e][SEND]);
		same_got(&w->got[e][RECV], &h->got[e][RECV]);
		same_line(&w->line[e], &h->line[e]);
		same_qp(&w->qp[e], &h->qp[e]);
	}
	for (e = A; e <= B; e++)
		same_window(&w->window[e], &h->window[e]);
	assert_memory_equal(h->mr[A], w->mr[A], REGION);
	assert_memory_equal(h->mr[B], w->mr[B], REGION);
	assert_memory_equal(h->far, w->far, FAR_LEN);
	same_events(w, h, traffic);
}

/* Which of @w's receives got the same message as @h, from number @i on. */
static uint32_t same_message(const struct got *w, uint32_t i,
			     const struct sf_cqe *h)
{
	while (i < w->n && w->cqe[i].imm != h->imm)
		i++;
	assert_true(i < w->n);
	return i;
}

/*
 * The sender sees what he would have seen; of the messages some got there, each
 * once, whole and in order.
 */
static void lossy_outcome(const struct rig *g, const struct outcome *w,
			  const struct outcome *h)
{
	const struct got *got = &h->got[B][RECV];
	uint32_t head = g->end[B].init.type == RNIC_QPT_UD ? GRH : 0;
	uint32_t i, j = 0;

	same_got(&w->got[A][SEND], &h->got[A][SEND]);
	same_line(&w->line[A], &h->line[A]);
	same_qp(&w->qp[A], &h->qp[A]);
	assert_int_equal(h->qp[B].state, w->qp[B].state);
	assert_int_equal(h->qp[B].resp.intent.set, 0);
	for (i = 0; i < got->n; i++, j++) {
		const struct sf_cqe *cqe = &got->cqe[i];
		struct sf_cqe as;

		j = same_message(&w->got[B][RECV], j, cqe);
		as = w->got[B][RECV].cqe[j];
		as.wr = i;
		same_cqe(&as, cqe);
		if (sf_cqe_opcode(cqe->word) == SF_CQE_RECV)
			assert_memory_equal(h->mr[B] + BUFFER(i) + head,
					    w->mr[B] + BUFFER(j) + head,
					    cqe->byte_len - head);
		else
			assert_memory_equal(h->mr[B] + TARGET(j),
					    w->mr[B] + TARGET(j),
					    cqe->byte_len);
	}
	same_events(w, h, true);
}

/* ---- what holds for whoever survives -------------------------------- */

/* Receives come back once each, in order; errors after all else. */
static void whole_receives(struct rig *g, uint32_t e, uint32_t posted)
{
	const struct got *got = &g->got[e][RECV];
	bool failed = false;
	uint32_t i;

	for (i = 0; i < got->n; i++) {
		bool bad = sf_cqe_status(got->cqe[i].word);

		assert_int_equal(got->cqe[i].wr, i);
		assert_true(bad || !failed);
		failed |= bad;
	}
	if (has_srq(g, e))
		assert_int_equal(got->n, fx_srq_state(&g->srq)->head -
						 g->srq.mem.start);
	else if (qp_of(g, e)->state == RNIC_ERR)
		assert_int_equal(got->n, posted);
	else
		assert_int_equal(got->n, qp_of(g, e)->resp.rq_head);
}

/* Requests complete in order, and the line says the same as the CQEs. */
static void whole_sends(struct rig *g, uint32_t e)
{
	const struct got *got = &g->got[e][SEND];
	const struct sf_send_line *line = fx_line(&g->end[e]);
	uint64_t done = line->word & SF_LINE_INDEX_MASK, i;
	bool err = qp_of(g, e)->state == RNIC_ERR;
	uint32_t n = 0;

	assert_int_equal(!!(line->word & SF_LINE_ERROR), err);
	assert_true(done <= g->end[e].sq_next);
	if (done < g->end[e].sq_next)
		assert_int_equal(line->failed, done);
	else
		assert_true(line->failed == SF_LINE_NO_FAILED);
	for (i = g->first[e]; i < g->end[e].sq_next; i++) {
		uint32_t flags =
			e == A ? g->flags[i - g->first[e]] : SF_WQE_SIGNALED;
		const struct sf_cqe *cqe = &got->cqe[n];

		if (i < done && !(flags & SF_WQE_SIGNALED))
			continue;
		assert_true(n < got->n);
		n++;
		assert_int_equal(cqe->wr, i);
		if (i < done)
			assert_int_equal(sf_cqe_status(cqe->word), 0);
		else if (i == done)
			assert_int_equal(sf_cqe_status(cqe->word),
					 line->status);
		else
			assert_int_equal(sf_cqe_status(cqe->word),
					 SF_ST_WR_FLUSH_ERR);
	}
	assert_int_equal(got->n, n);
}

/* What b was told to have got is there. */
static void whole_data_of_b(struct rig *g, const struct outcome *w)
{
	const struct got *got = &g->got[B][RECV];
	uint32_t i;

	for (i = 0; i < got->n; i++) {
		const struct sf_cqe *cqe = &got->cqe[i];
		uint32_t at = sf_cqe_opcode(cqe->word) == SF_CQE_RECV ?
				      BUFFER(i) :
				      TARGET(i);

		if (sf_cqe_status(cqe->word))
			break;
		same_cqe(&w->got[B][RECV].cqe[i], cqe);
		assert_memory_equal(g->mr[B].ptr + at, w->mr[B] + at,
				    cqe->byte_len);
	}
	/* An atomic is done or not. */
	for (i = 0; i < MAX_WR; i++) {
		uint64_t v;

		memcpy(&v, g->mr[B].ptr + NUMBER(i), 8);
		if (v != 100 + i)
			assert_memory_equal(&v, w->mr[B] + NUMBER(i), 8);
	}
}

/* What a's READs and atomics brought is there. */
static void whole_data_of_a(struct rig *g, const struct outcome *w)
{
	const struct got *got = &g->got[A][SEND];
	uint32_t i;

	for (i = 0; i < got->n; i++) {
		const struct sf_cqe *cqe = &got->cqe[i];
		uint64_t at = RESULT(cqe->wr - g->first[A]);
		uint32_t opcode = sf_cqe_opcode(cqe->word);

		if (sf_cqe_status(cqe->word))
			break;
		if (opcode == SF_OP_READ || opcode == SF_OP_ATOMIC_CAS ||
		    opcode == SF_OP_ATOMIC_FADD)
			assert_memory_equal(g->mr[A].ptr + at, w->mr[A] + at,
					    cqe->byte_len);
	}
}

/* ---- going on ------------------------------------------------------- */

static void clear_got(struct rig *g)
{
	memset(g->got, 0, sizeof(g->got));
}

/* One message from @x to @y. */
static void message(struct rig *g, uint32_t x, uint32_t y)
{
	struct fx_wr wr = {.opcode = SF_OP_SEND, .flags = SF_WQE_SIGNALED};
	uint32_t sent = g->got[x][SEND].n, got = g->got[y][RECV].n;

	address(g, &wr, x, y);
	recv_quietly(g, y, 90, false);
	fx_send(&g->end[x], &wr);
	settle(g);
	drain(g);
	assert_int_equal(g->got[x][SEND].n, sent + 1);
	assert_int_equal(g->got[y][RECV].n, got + 1);
	assert_int_equal(sf_cqe_status(g->got[x][SEND].cqe[sent].word), 0);
	assert_int_equal(sf_cqe_status(g->got[y][RECV].cqe[got].word), 0);
}

static void messages(struct rig *g, uint32_t x, uint32_t y)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		message(g, x, y);
		if (g->end[y].init.type != RNIC_QPT_XRC_RECV)
			message(g, y, x);
	}
}

static void start_again(struct fx_end *e)
{
	assert_int_equal(fx_modify(e, RNIC_RESET), 0);
	fx_resync(e);
}

/* @x and @y, whatever state they are in. */
static void go_on(struct rig *g, uint32_t x, uint32_t y,
		  const struct scenario *s)
{
	struct fx_opts o = opts_of(s);

	clear_got(g);
	if (fx_state(&g->end[x]) != RNIC_RTS ||
	    fx_state(&g->end[y]) != RNIC_RTS) {
		start_again(&g->end[x]);
		start_again(&g->end[y]);
		connect_both(&g->end[x], &g->end[y], &o);
	}
	messages(g, x, y);
}

/* The other process is started again. */
static void go_on_with_another(struct rig *g, uint32_t x, uint32_t gone,
			       const struct scenario *s)
{
	struct fx_opts o = opts_of(s);

	if (gone == B)
		g->srq.srqn = 0;
	fx_end_new(&g->end[gone], &g->fx, g->fx.r, 3, gone & 1, &o);
	start_again(&g->end[x]);
	connect_both(&g->end[x], &g->end[gone], &o);
	clear_got(g);
	messages(g, x, gone);
}

static void all_goes(struct rig *g)
{
	struct rnic_objects n;
	uint32_t i;

	for (i = 1; i < 16; i++)
		assert_true(rnic_ctx_reap(g->fx.r, i));
	rnic_count_objects(g->fx.r, ~0u, &n);
	assert_int_equal(n.pds | n.mrs | n.mws | n.cqs | n.qps, 0);
	assert_int_equal(n.srqs | n.ahs | n.xrcds, 0);
	assert_int_equal(g->fx.helds, 0);
	for (i = 0; i < g->fx.allocs; i++)
		assert_int_equal(g->fx.alloc[i].test, 1);
}

/* ---- deaths --------------------------------------------------------- */

static struct {
	enum way way;
	uint32_t stop, second;
	bool under_way;
} replay;

static void daemon_mends(struct rig *g)
{
	rnic_repair(g->fx.r);
	settle(g);
}

static void others_come_by(struct rig *g)
{
	uint32_t e;

	for (e = 0; e < ENDS; e++) {
		rnic_sq_ring(g->fx.r, g->end[e].qpn);
		ring_receives(g, e);
	}
	settle(g);
}

static void others_make_a_lap(struct rig *g)
{
	uint32_t i;

	for (i = 0; i < (1 << CQ_LOG_DEPTH) + 2; i++)
		message(g, i & 1 ? D : C, i & 1 ? C : D);
}

static void exactly_once(struct rig *g, const struct scenario *s, enum way way)
{
	if (way == BY_OTHERS)
		others_come_by(g);
	if (way == AFTER_A_LAP)
		others_make_a_lap(g);
	daemon_mends(g);
	if (s->later)
		s->later(g);
	settle(g);
	drain(g);
	see(g, &have);
	if (s->lossy)
		lossy_outcome(g, &want, &have);
	else
		same_outcome(&want, &have, way == AFTER_A_LAP);
	if (!s->overrun) {
		go_on(g, A, B, s);
		go_on(g, C, D, s);
	}
	all_goes(g);
}

static void without_process(struct rig *g, const struct scenario *s,
			    uint32_t ctx)
{
	uint32_t gone = ctx - 1, stays = gone ^ 1;

	daemon_mends(g);
	rnic_ctx_orphan_peers(g->fx.r, ctx);
	assert_true(rnic_ctx_reap(g->fx.r, ctx));
	settle(g);
	if (s->later)
		s->later(g);
	settle(g);
	drain_cq(g, &g->end[stays].scq);
	drain_cq(g, &g->end[stays].rcq);
	assert_int_equal(fx_state(&g->end[stays]), RNIC_ERR);
	whole_receives(g, stays, stays == B ? g->recvs : 0);
	whole_sends(g, stays);
	if (stays == B)
		whole_data_of_b(g, &want);
	else
		whole_data_of_a(g, &want);
	go_on_with_another(g, stays, gone, s);
	all_goes(g);
}

static void follow_resize(struct fx_cq *cq)
{
	cq->mem.ring = rnic_cq_ring(fx_cq_state(cq));
	cq->log_depth = rnic_cq_log_depth(fx_cq_state(cq));
}

/* Every process hears of it and gives up its QPs; nobody runs timers. */
static void without_daemon(struct rig *g)
{
	uint32_t e;

	rnic_ctx_fail(g->fx.r, 1);
	rnic_ctx_fail(g->fx.r, 2);
	follow_resize(&g->end[A].scq);
	drain(g);
	for (e = A; e <= B; e++) {
		if (!qp_lives(g, e) || fx_state(&g->end[e]) != RNIC_ERR)
			continue;
		whole_receives(g, e, e == B ? g->recvs : 0);
		whole_sends(g, e);
	}
}

static void die_at(struct rig *g, const struct scenario *s, uint32_t stop,
		   enum way way)
{
	replay.way = way;
	replay.stop = stop;
	log_restore(&logs[0], stop);
	fx_die(&g->fx);
	switch (way) {
	case WITH_PROCESS_1:
		without_process(g, s, 1);
		break;
	case WITH_PROCESS_2:
		without_process(g, s, 2);
		break;
	case WITH_DAEMON:
		without_daemon(g);
		break;
	default:
		exactly_once(g, s, way);
	}
}

static void ring_a(struct rig *g)
{
	rnic_sq_ring(g->fx.r, g->end[A].qpn);
}

static uint64_t total_stops, total_deaths, total_scenarios;

static void step_through(struct rig *g, void (*act)(struct rig *g))
{
	steps_on();
	act(g);
	steps_off();
	assert_true(log_now->changes < MAX_CHANGES);
	assert_true(log_now->stops < MAX_STOPS);
	total_stops += log_now->stops;
}

static void ring_a_and_wire(struct rig *g)
{
	ring_a(g);
	wire_run(g);
}

static void repair(struct rig *g)
{
	rnic_repair(g->fx.r);
}

/* Who repairs after a death at @stop dies, too. */
static void mender_dies(struct rig *g, const struct scenario *s, uint32_t stop)
{
	uint32_t i;

	log_restore(&logs[0], stop);
	fx_die(&g->fx);
	log_begin(&logs[1]);
	step_through(g, repair);
	for (i = 0; i < logs[1].stops; i++, total_deaths++) {
		replay.stop = stop;
		replay.way = BY_DAEMON;
		replay.second = i + 1;
		log_restore(&logs[1], i);
		fx_die(&g->fx);
		exactly_once(g, s, BY_DAEMON);
	}
	replay.second = 0;
}

static void every_store(void **state)
{
	const struct scenario *s = *state;
	uint32_t ways = s->ways ? s->ways : EXECUTED_BY_1, i;
	struct rig *g = &rig;
	enum way way;

	if (!steps_work())
		skip();
	rig_open(g, s);
	step_through(g, s->act ? s->act : ring_a);
	settle(g);
	if (s->later)
		s->later(g);
	settle(g);
	follow_resize(&g->end[A].scq);
	drain(g);
	see(g, &want);

	replay.under_way = true;
	for (i = 0; i < logs[0].stops; i++) {
		for (way = 0; way < WAYS; way++)
			if (ways & 1u << way) {
				die_at(g, s, i, way);
				total_deaths++;
			}
		/* Each takes a while: some of them. */
		if (s->twice && i % 4 == 3)
			mender_dies(g, s, i);
	}
	replay.under_way = false;
	total_scenarios++;
	world_forget();
	fx_close(&g->fx);
}

static int say_where(void **state)
{
	const struct stop *stop = &logs[0].stop[replay.stop];

	(void)state;
	if (replay.under_way)
		print_error("died after store %u of %u (before %#lx), %s\n",
			    replay.stop + 1, logs[0].stops,
			    (unsigned long)stop->ip, way_names[replay.way]);
	if (replay.under_way && replay.second)
		print_error("and its mender after store %u\n", replay.second);
	replay.under_way = false;
	replay.second = 0;
	world_forget();
	return 0;
}

/* ---- scenarios ------------------------------------------------------ */

static void post_receives(struct rig *g)
{
	while (g->recvs < 3)
		recv_quietly(g, B, g->recvs++, false);
	ring_receives(g, B);
}

static void ask_for_event(struct fx_cq *cq, uint64_t mode)
{
	struct sf_cq_ctrl *ctrl = rnic_at(cq->r, cq->mem.ctrl);

	ctrl->arm = cq->consumer | mode << SF_CQ_ARM_SHIFT;
}

static void arm(struct rig *g, uint64_t mode)
{
	uint32_t e;

	for (e = A; e <= B; e++) {
		ask_for_event(&g->end[e].scq, mode);
		rnic_cq_arm(g->fx.r, g->end[e].scq.cqn);
		ask_for_event(&g->end[e].rcq, mode);
		rnic_cq_arm(g->fx.r, g->end[e].rcq.cqn);
	}
}

static void arm_any(struct rig *g)
{
	arm(g, SF_CQ_ARM_ANY);
}

static void arm_solicited(struct rig *g)
{
	arm(g, SF_CQ_ARM_SOLICITED);
}

static void ring_b(struct rig *g)
{
	ring_receives(g, B);
}

/* a waits; receives are posted, but b has not rung. */
static void wait_for_receive(struct rig *g)
{
	ring_a(g);
	while (g->recvs < 3)
		recv_quietly(g, B, g->recvs++, false);
}

/* c and d do something in the same moment. */
static void ring_a_and_c(struct rig *g)
{
	ring_a(g);
	rnic_sq_ring(g->fx.r, g->end[C].qpn);
}

static void work_for_c(struct rig *g)
{
	struct fx_wr wr = {.opcode = SF_OP_SEND, .flags = SF_WQE_SIGNALED};

	recv_quietly(g, D, 0, false);
	recv_quietly(g, D, 1, false);
	fx_post(&g->end[C], &wr);
	fx_post(&g->end[C], &wr);
}

static void arm_later(struct rig *g)
{
	ring_a(g);
	ask_for_event(&g->end[B].rcq, SF_CQ_ARM_ANY);
}

static void ring_cq(struct rig *g)
{
	rnic_cq_arm(g->fx.r, g->end[B].rcq.cqn);
}

static void lose_device(struct rig *g)
{
	rnic_ctx_fail(g->fx.r, 1);
}

static void fill_scq(struct rig *g)
{
	struct fx_wr wr = {.opcode = SF_OP_NOP, .flags = SF_WQE_SIGNALED};
	uint32_t i;

	for (i = 0; i < 1 << CQ_LOG_DEPTH; i++)
		fx_send(&g->end[C], &wr);
}

/* a's CQE could not be written, and then it was told to drain. */
static void drain_with_cq_busy(struct rig *g)
{
	struct rnic_qp_attr attr = {.state = RNIC_SQD, .en_sqd_notify = 1};

	fx_lock_busy(&fx_cq_state(&g->end[A].scq)->lock, 1);
	ring_a(g);
	assert_int_equal(rnic_qp_modify(g->fx.r, 1, g->end[A].qpn, &attr,
					RNIC_QP_STATE | RNIC_QP_EN_SQD_NOTIFY),
			 0);
	assert_int_equal(fx_qp(&g->end[A])->req.wait, RNIC_WAIT_CQE);
	g->fx.now = g->fx.deadline;
}

static void to_rts_again(struct rig *g)
{
	assert_int_equal(fx_modify(&g->end[A], RNIC_RTS), 0);
}

/* Somebody's timer is due. */
static void wait_for_timer(struct rig *g)
{
	wait_for_receive(g);
	g->fx.now = g->fx.deadline;
	g->fx.deadline = UINT64_MAX;
}

static void lose_the_peer(struct rig *g)
{
	fx_qp(&g->end[B])->state = RNIC_RESET;
	ring_a(g);
	fx_qp(&g->end[B])->state = RNIC_RTS;
	g->fx.now = g->fx.deadline;
	g->fx.deadline = UINT64_MAX;
}

static void tick(struct rig *g)
{
	uint64_t next = rnic_tick(g->fx.r, g->fx.now);

	if (next < g->fx.deadline)
		g->fx.deadline = next;
}

static void modify_err(struct rig *g)
{
	fx_modify(&g->end[A], RNIC_ERR);
}

static void modify_reset(struct rig *g)
{
	fx_modify(&g->end[A], RNIC_RESET);
}

static void grow_cq(struct rig *g)
{
	struct rnic_cq_mem mem;

	rnic_cq_resize(g->fx.r, 1, g->end[A].scq.cqn, CQ_LOG_DEPTH + 1, &mem);
}

static void shrink_cq(struct rig *g)
{
	struct rnic_cq_mem mem;

	rnic_cq_resize(g->fx.r, 1, g->end[A].scq.cqn, CQ_LOG_DEPTH - 1, &mem);
}

static void destroy_qp(struct rig *g)
{
	uint32_t n;

	rnic_qp_destroy(g->fx.r, 1, g->end[A].qpn, &n);
}

static void destroy_qps(struct rig *g)
{
	uint32_t n;

	destroy_qp(g);
	rnic_qp_destroy(g->fx.r, 1, g->end[C].qpn, &n);
}

static void destroy_cq(struct rig *g)
{
	uint32_t n;

	rnic_cq_destroy(g->fx.r, 1, g->end[A].scq.cqn, &n, &n);
}

static void destroy_mr(struct rig *g)
{
	rnic_mr_destroy(g->fx.r, 2, g->mr[B].key);
}

static void wait_in_error(struct rig *g)
{
	uint32_t i;

	fx_modify(&g->end[A], RNIC_ERR);
	fx_modify(&g->end[B], RNIC_ERR);
	for (i = 0; i < 2; i++) {
		struct request nop = {.opcode = SF_OP_NOP};
		struct fx_wr wr = wr_of(g, i, &nop);

		fx_post(&g->end[A], &wr);
		recv_quietly(g, B, g->recvs++, false);
	}
}

static void ring_both(struct rig *g)
{
	ring_a(g);
	ring_b(g);
}

/* Opens the window of @e, for its QP. */
static void open_window(struct rig *g, uint32_t e)
{
	struct rnic_bind bind = {
		.key = g->window[e],
		.lkey = g->mr[e].key,
		.access = SF_ACCESS_REMOTE_WRITE,
		.addr = g->mr[e].addr,
		.len = 64,
	};
	struct rnic_call call;
	uint64_t begun = 0;

	rnic_call_begin(&call, g->fx.r);
	assert_int_equal(rnic_mw_bind(&call, qp_of(g, e), &bind, &begun, 1), 0);
}

static void open_window_of_a(struct rig *g)
{
	open_window(g, A);
}

static void open_window_of_b(struct rig *g)
{
	open_window(g, B);
}

/* Fewer than the limit are left when one is taken. */
static void set_limit(struct rig *g)
{
	assert_int_equal(rnic_srq_set_limit(g->fx.r, 2, g->srq.srqn, 2), 0);
}

#define SIG SF_WQE_SIGNALED
#define SOL SF_WQE_SOLICITED

static struct scenario scenarios[] = {
	{
		.name = "SEND",
		.twice = true,
		.wr = {{SF_OP_SEND, SIG, 40, 0}},
		.wrs = 1,
		.recvs = 2,
	},
	{
		.name = "SEND, unsignaled",
		.wr = {{SF_OP_SEND, 0, 40, 0}},
		.wrs = 1,
		.recvs = 2,
	},
	{
		.name = "SEND, received in the CQE",
		.wr = {{SF_OP_SEND, SIG, 12, 0}},
		.wrs = 1,
		.recvs = 2,
		.inline_recv = true,
		.timestamps = true,
	},
	{
		.name = "SEND of three packets",
		.wr = {{SF_OP_SEND, SIG, 640, 0}},
		.wrs = 1,
		.recvs = 2,
		.burst = 256,
	},
	{
		.name = "SEND with immediate, solicited",
		.wr = {{SF_OP_SEND_IMM, SIG | SOL, 40, 0}},
		.wrs = 1,
		.recvs = 1,
		.arrange = arm_solicited,
	},
	{
		.name = "SEND, event",
		.wr = {{SF_OP_SEND, SIG, 7, 0}},
		.wrs = 1,
		.recvs = 1,
		.arrange = arm_any,
	},
	{
		.name = "RDMA WRITE",
		.wr = {{SF_OP_WRITE, SIG, 64, 0}},
		.wrs = 1,
		.recvs = 1,
	},
	{
		.name = "RDMA WRITE of three packets",
		.wr = {{SF_OP_WRITE, SIG, 600, 0}},
		.wrs = 1,
		.burst = 256,
	},
	{
		.name = "RDMA WRITE with immediate",
		.wr = {{SF_OP_WRITE_IMM, SIG, 64, 0}},
		.wrs = 1,
		.recvs = 2,
	},
	{
		.name = "RDMA WRITE with immediate of two packets",
		.wr = {{SF_OP_WRITE_IMM, SIG, 500, 0}},
		.wrs = 1,
		.recvs = 2,
		.burst = 256,
	},
	{
		.name = "bind of a window",
		.twice = true,
		.wr = {{SF_OP_BIND_MW, SIG, 0, 0}, {SF_OP_NOP, 0, 0, 0}},
		.wrs = 2,
	},
	{
		.name = "local invalidation, then another bind",
		.wr = {{SF_OP_LOCAL_INV, 0, 0, 0}, {SF_OP_BIND_MW, SIG, 0, 0}},
		.wrs = 2,
		.arrange = open_window_of_a,
	},
	{
		.name = "bind of a window that is bound",
		.wr = {{SF_OP_BIND_MW, SIG, 0, 0}, {SF_OP_NOP, SIG, 0, 0}},
		.wrs = 2,
		.arrange = open_window_of_a,
	},
	{
		.name = "SEND that invalidates",
		.twice = true,
		.wr = {{SF_OP_SEND_INV, SIG, 40, 0}, {SF_OP_SEND, 0, 8, 0}},
		.wrs = 2,
		.recvs = 3,
		.arrange = open_window_of_b,
	},
	{
		.name = "SEND of three packets that invalidates, on a wire",
		.wr = {{SF_OP_SEND_INV, SIG, 640, 0}},
		.wrs = 1,
		.recvs = 2,
		.wire = true,
		.arrange = open_window_of_b,
		.act = ring_a_and_wire,
	},
	{
		.name = "SEND that finds nothing to invalidate",
		.wr = {{SF_OP_SEND_INV, SIG, 40, 0}},
		.wrs = 1,
		.recvs = 2,
	},
	{
		.name = "atomic write",
		.wr = {{SF_OP_ATOMIC_WRITE, SIG, 8, 0}, {SF_OP_NOP, 0, 0, 0}},
		.wrs = 2,
	},
	{
		.name = "RDMA WRITE with signal",
		.wr = {{SF_OP_WRITE, SIG | SF_WQE_SIGNAL, 64, 0},
		       {SF_OP_NOP, 0, 0, 0}},
		.wrs = 2,
	},
	{
		.name = "RDMA WRITE with signal, two packets, on a wire",
		.wr = {{SF_OP_WRITE, SIG | SF_WQE_SIGNAL, 300, 0},
		       {SF_OP_WRITE, SF_WQE_SIGNAL, 0, 0}},
		.wrs = 2,
		.wire = true,
		.act = ring_a_and_wire,
	},
	{
		.name = "RDMA READ",
		.wr = {{SF_OP_READ, SIG, 64, 0}},
		.wrs = 1,
	},
	{
		.name = "RDMA READ of three packets",
		.wr = {{SF_OP_READ, SIG, 640, 0}},
		.wrs = 1,
		.burst = 256,
	},
	{
		.name = "SEND of three packets on a wire",
		.wr = {{SF_OP_SEND, SIG, 640, 0}},
		.wrs = 1,
		.recvs = 2,
		.wire = true,
		.act = ring_a_and_wire,
	},
	{
		.name = "RDMA WRITE with immediate, READ, NOP on a wire",
		.wr = {{SF_OP_WRITE_IMM, 0, 300, 0},
		       {SF_OP_READ, SIG, 300, 0},
		       {SF_OP_NOP, SIG, 0, 0}},
		.wrs = 3,
		.recvs = 1,
		.wire = true,
		.act = ring_a_and_wire,
	},
	{
		.name = "FETCH_ADD twice on a wire",
		.wr = {{SF_OP_ATOMIC_FADD, SIG, 8, 0},
		       {SF_OP_ATOMIC_FADD, 0, 8, 0}},
		.wrs = 2,
		.wire = true,
		.act = ring_a_and_wire,
	},
	{
		.name = "remote access error on a wire",
		.wr = {{SF_OP_WRITE, SIG, 40, BAD_RKEY},
		       {SF_OP_SEND, 0, 40, 0}},
		.wrs = 2,
		.recvs = 2,
		.wire = true,
		.act = ring_a_and_wire,
	},
	{
		.name = "FETCH_ADD",
		.twice = true,
		.wr = {{SF_OP_ATOMIC_FADD, SIG, 8, 0}},
		.wrs = 1,
	},
	{
		.name = "FETCH_ADD through the host",
		.wr = {{SF_OP_ATOMIC_FADD, SIG, 8, FAR}},
		.wrs = 1,
	},
	{
		.name = "CMP_SWAP",
		.wr = {{SF_OP_ATOMIC_CAS, SIG, 8, 0}},
		.wrs = 1,
	},
	{
		.name = "four in a row",
		.wr = {{SF_OP_SEND, 0, 40, 0},
		       {SF_OP_ATOMIC_FADD, 0, 8, 0},
		       {SF_OP_WRITE_IMM, SIG, 100, 0},
		       {SF_OP_NOP, SIG, 0, 0}},
		.wrs = 4,
		.recvs = 3,
	},
	{
		.name = "local error",
		.wr = {{SF_OP_SEND, 0, 40, 0},
		       {SF_OP_SEND, SIG, 40, BAD_LKEY},
		       {SF_OP_SEND, 0, 40, 0}},
		.wrs = 3,
		.recvs = 3,
	},
	{
		.name = "remote access error",
		.wr = {{SF_OP_WRITE, SIG, 40, BAD_RKEY},
		       {SF_OP_SEND, 0, 40, 0}},
		.wrs = 2,
		.recvs = 2,
	},
	{
		.name = "receive too short",
		.wr = {{SF_OP_SEND, SIG, 641, 0}, {SF_OP_SEND, 0, 40, 0}},
		.wrs = 2,
		.recvs = 2,
	},
	{
		.name = "receive that is not the receiver's",
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, 0, 40, 0}},
		.wrs = 2,
		.recvs = 2,
		.bad_recv = true,
	},
	{
		.name = "no receive posted",
		.wr = {{SF_OP_SEND, SIG, 40, 0}},
		.wrs = 1,
		.later = post_receives,
	},
	{
		.name = "no receive posted, no retry",
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_NOP, 0, 0, 0}},
		.wrs = 2,
		.rnr_retry = 1,
	},
	{
		.name = "post_recv for one who waits",
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, SIG, 41, 0}},
		.wrs = 2,
		.arrange = wait_for_receive,
		.act = ring_b,
		.ways = EXECUTED_BY_2,
	},
	{
		.name = "two QPs that share a CQ",
		.wr = {{SF_OP_SEND, SIG, 40, 0}},
		.wrs = 1,
		.recvs = 2,
		.arrange = work_for_c,
		.act = ring_a_and_c,
		.ways = EXECUTED_BY_1 & ~(1u << AFTER_A_LAP),
	},
	{
		.name = "arming a CQ that has something",
		.wr = {{SF_OP_SEND, SIG, 40, 0}},
		.wrs = 1,
		.recvs = 1,
		.arrange = arm_later,
		.act = ring_cq,
		.ways = EXECUTED_BY_2,
	},
	{
		.name = "requests and receives of lost QPs",
		.arrange = wait_in_error,
		.act = ring_both,
		.ways = EXECUTED_BY_1 | EXECUTED_BY_2,
	},
	{
		.name = "overrun of a CQ, event",
		.wr = {{SF_OP_WRITE, SIG, 40, 0}, {SF_OP_NOP, 0, 0, 0}},
		.wrs = 2,
		.arrange = fill_scq,
		.ways = 1u << BY_DAEMON | 1u << BY_OTHERS,
		.overrun = true,
	},
	{
		.name = "send queue that drains, event",
		.wr = {{SF_OP_WRITE, SIG, 40, 0}, {SF_OP_NOP, 0, 0, 0}},
		.wrs = 2,
		.arrange = drain_with_cq_busy,
		.later = to_rts_again,
		.ways = 1u << BY_DAEMON | 1u << BY_OTHERS | 1u << AFTER_A_LAP,
	},
	{
		.name = "timer of one who waits for a receive",
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, SIG, 41, 0}},
		.wrs = 2,
		.arrange = wait_for_timer,
		.act = tick,
		.ways = EXECUTED_BY_ANY,
	},
	{
		.name = "timer of one who waits for an answer",
		.wr = {{SF_OP_ATOMIC_FADD, SIG, 8, 0}, {SF_OP_NOP, SIG, 0, 0}},
		.wrs = 2,
		.arrange = lose_the_peer,
		.act = tick,
		.ways = EXECUTED_BY_ANY,
	},
	{
		.name = "lost device",
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, 0, 41, 0}},
		.wrs = 2,
		.arrange = wait_for_receive,
		.act = lose_device,
		.ways = 1u << WITH_DAEMON,
	},
	{
		.name = "modify to ERR",
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, 0, 41, 0}},
		.wrs = 2,
		.arrange = wait_for_receive,
		.act = modify_err,
		.ways = 1u << BY_DAEMON | 1u << BY_OTHERS | 1u << WITH_DAEMON,
	},
	{
		.name = "modify to RESET",
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, 0, 41, 0}},
		.wrs = 2,
		.arrange = wait_for_receive,
		.act = modify_reset,
		.ways = 1u << WITH_DAEMON,
	},
	{
		.name = "larger CQ",
		.wr = {{SF_OP_WRITE, SIG, 40, 0}, {SF_OP_NOP, SIG, 0, 0}},
		.wrs = 2,
		.arrange = ring_a,
		.act = grow_cq,
		.ways = 1u << WITH_DAEMON,
	},
	{
		.name = "smaller CQ",
		.wr = {{SF_OP_WRITE, SIG, 40, 0}, {SF_OP_NOP, SIG, 0, 0}},
		.wrs = 2,
		.arrange = ring_a,
		.act = shrink_cq,
		.ways = 1u << WITH_DAEMON,
	},
	{
		.name = "destroy a QP",
		.wr = {{SF_OP_SEND, SIG, 40, 0}},
		.wrs = 1,
		.arrange = wait_for_receive,
		.act = destroy_qp,
		.ways = 1u << WITH_DAEMON,
	},
	{
		.name = "destroy a CQ",
		.arrange = destroy_qps,
		.act = destroy_cq,
		.ways = 1u << WITH_DAEMON,
	},
	{
		.name = "destroy an MR",
		.wr = {{SF_OP_SEND, SIG, 40, 0}},
		.wrs = 1,
		.arrange = wait_for_receive,
		.act = destroy_mr,
		.ways = 1u << WITH_DAEMON,
	},
	{
		.name = "SRQ: SEND",
		.twice = true,
		.srq = true,
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, 0, 41, 0}},
		.wrs = 2,
		.recvs = 3,
	},
	{
		.name = "SRQ: SEND of three packets on a wire",
		.srq = true,
		.wr = {{SF_OP_SEND, SIG, 640, 0}},
		.wrs = 1,
		.recvs = 2,
		.wire = true,
		.act = ring_a_and_wire,
	},
	{
		.name = "SRQ: RDMA WRITE with immediate, below the limit",
		.srq = true,
		.wr = {{SF_OP_WRITE_IMM, SIG, 64, 0}},
		.wrs = 1,
		.recvs = 2,
		.arrange = set_limit,
	},
	{
		.name = "SRQ: receive too short",
		.srq = true,
		.wr = {{SF_OP_SEND, SIG, 641, 0}, {SF_OP_SEND, 0, 40, 0}},
		.wrs = 2,
		.recvs = 2,
	},
	{
		.name = "SRQ: post_recv for one who waits",
		.srq = true,
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, SIG, 41, 0}},
		.wrs = 2,
		.arrange = wait_for_receive,
		.act = ring_b,
		.ways = EXECUTED_BY_2,
	},
	{
		.name = "XRC: SEND",
		.type = RNIC_QPT_XRC_SEND,
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, 0, 41, 0}},
		.wrs = 2,
		.recvs = 3,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "XRC: SEND of three packets, then an atomic",
		.type = RNIC_QPT_XRC_SEND,
		.wr = {{SF_OP_SEND, SIG, 640, 0},
		       {SF_OP_ATOMIC_FADD, SIG, 8, 0}},
		.wrs = 2,
		.recvs = 2,
		.burst = 256,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "XRC: RDMA WRITE with immediate, below the limit",
		.type = RNIC_QPT_XRC_SEND,
		.wr = {{SF_OP_WRITE_IMM, SIG, 64, 0}},
		.wrs = 1,
		.recvs = 2,
		.arrange = set_limit,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "XRC: remote access error",
		.type = RNIC_QPT_XRC_SEND,
		.wr = {{SF_OP_WRITE, SIG, 40, BAD_RKEY},
		       {SF_OP_SEND, 0, 40, 0}},
		.wrs = 2,
		.recvs = 2,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "XRC: post_recv for one who waits",
		.type = RNIC_QPT_XRC_SEND,
		.wr = {{SF_OP_SEND, SIG, 40, 0}, {SF_OP_SEND, SIG, 41, 0}},
		.wrs = 2,
		.arrange = wait_for_receive,
		.act = ring_b,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "UD: SEND with immediate",
		.type = RNIC_QPT_UD,
		.lossy = true,
		.wr = {{SF_OP_SEND_IMM, SIG, 40, 0},
		       {SF_OP_SEND_IMM, SIG, 41, 0}},
		.wrs = 2,
		.recvs = 3,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "UD: local error",
		.type = RNIC_QPT_UD,
		.lossy = true,
		.wr = {{SF_OP_SEND_IMM, 0, 40, 0},
		       {SF_OP_SEND_IMM, SIG, 40, BAD_LKEY},
		       {SF_OP_SEND_IMM, 0, 40, 0}},
		.wrs = 3,
		.recvs = 3,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "UC: SEND with immediate",
		.twice = true,
		.type = RNIC_QPT_UC,
		.lossy = true,
		.wr = {{SF_OP_SEND_IMM, SIG, 40, 0},
		       {SF_OP_SEND_IMM, SIG, 41, 0}},
		.wrs = 2,
		.recvs = 3,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "UC: SEND of three packets, then another",
		.type = RNIC_QPT_UC,
		.lossy = true,
		.wr = {{SF_OP_SEND_IMM, SIG, 640, 0},
		       {SF_OP_SEND_IMM, SIG, 41, 0}},
		.wrs = 2,
		.recvs = 3,
		.burst = 256,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "UC: RDMA WRITE with immediate of two packets",
		.type = RNIC_QPT_UC,
		.lossy = true,
		.wr = {{SF_OP_WRITE_IMM, SIG, 500, 0},
		       {SF_OP_WRITE_IMM, SIG, 40, 0}},
		.wrs = 2,
		.recvs = 2,
		.burst = 256,
		.ways = SURVIVED_BY_BOTH,
	},
	{
		.name = "UC: bind of a window, then a SEND",
		.type = RNIC_QPT_UC,
		.lossy = true,
		.wr = {{SF_OP_BIND_MW, SIG, 0, 0}, {SF_OP_SEND_IMM, 0, 9, 0}},
		.wrs = 2,
		.recvs = 2,
		.ways = SURVIVED_BY_BOTH,
	},
};

int main(void)
{
	enum {
		N = sizeof(scenarios) / sizeof(scenarios[0])
	};
	struct CMUnitTest tests[N];
	struct sigaction on = {
		.sa_sigaction = on_step,
		.sa_flags = SA_SIGINFO,
	};
	uint32_t i;
	int failed;

	sigaction(SIGTRAP, &on, NULL);
	for (i = 0; i < N; i++)
		tests[i] = (struct CMUnitTest){
			.name = scenarios[i].name,
			.test_func = every_store,
			.teardown_func = say_where,
			.initial_state = &scenarios[i],
		};
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	print_message("%lu operations, %lu stops, %lu deaths, %lu steps\n",
		      total_scenarios, total_stops, total_deaths, world.steps);
	return failed;
}
