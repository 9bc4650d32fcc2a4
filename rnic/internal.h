/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the RNIC core share with each other. */
#ifndef RNIC_INTERNAL_H
#define RNIC_INTERNAL_H

#include <errno.h>
#include <string.h>
#include "rnic/state.h"

#define load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Between the unlock (an atomic exchange) and the look at what others left
 * meanwhile.  On x86 the exchange is a full fence by itself.
 */
static inline void rnic_fence_after_unlock(void)
{
#if defined(__x86_64__)
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Longest stretch of data that moves under one lock. */
#define RNIC_BURST (1u << 20)

/* ---- one call into the data path ------------------------------------ */

/*
 * Receivers that one step of a call reaches: members of a multicast group, the
 * rest of which have their turn later, or all that a frame is steered to.
 */
#define RNIC_MAX_COPIES 16

/* Something can be caused at each of them. */
#define RNIC_CALL_EVENTS (16 + 4 * RNIC_MAX_COPIES)
#define RNIC_CALL_KICKS (8 + RNIC_MAX_COPIES)

/*
 * What a call has found out and does when it holds no lock: events to raise,
 * queue pairs to be flushed.
 */
struct rnic_call {
	struct rnic *r;
	/*
	 * The caller has something else to do than other people's transfers:
	 * after a burst the rest is left to rnic_tick().
	 */
	bool bounded;
	uint32_t events;
	uint32_t kicks;
	struct rnic_event event[RNIC_CALL_EVENTS];
	uint32_t kick[RNIC_CALL_KICKS]; /* QPNs that went to ERR */
};

void rnic_call_begin(struct rnic_call *call, struct rnic *r);
/* No lock may be held. */
void rnic_call_end(struct rnic_call *call);
void rnic_call_event(struct rnic_call *call, const struct rnic_event *event);
void rnic_call_flush_qp(struct rnic_call *call, struct rnic_qp *qp);
/* Room for what one work request can cause? */
static inline bool rnic_call_crowded(const struct rnic_call *call)
{
	return call->events > 8 || call->kicks > 5;
}

/* ---- arena ---------------------------------------------------------- */

static inline void *rnic_at(const struct rnic *r, uint64_t off)
{
	return (char *)r->sh + off;
}

/* Asks the host for access up to @end. */
bool rnic_reach(const struct rnic *r, uint64_t end);

static inline bool rnic_in_arena(const struct rnic *r, uint64_t off,
				 uint64_t len)
{
	if (unlikely(off > r->size || len > r->size - off))
		return false;
	return likely(off + len <= load_relaxed(&r->mapped)) ||
	       rnic_reach(r, off + len);
}

static inline struct rnic_qp *rnic_qp_get(const struct rnic *r, uint32_t qpn)
{
	struct rnic_qp *qp = &r->sh->qp[qpn & (RNIC_MAX_QP - 1)];

	return qpn && load_acquire(&qp->qpn) == qpn ? qp : NULL;
}

static inline struct rnic_cq *rnic_cq_get(const struct rnic *r, uint32_t cqn)
{
	struct rnic_cq *cq = &r->sh->cq[cqn & (RNIC_MAX_CQ - 1)];

	return cqn < RNIC_MAX_CQ && load_acquire(&cq->live) ? cq : NULL;
}

static inline struct rnic_srq *rnic_srq_get(const struct rnic *r, uint32_t srqn)
{
	struct rnic_srq *srq = &r->sh->srq[srqn & (RNIC_MAX_SRQ - 1)];

	return srqn && srqn < RNIC_MAX_SRQ && load_acquire(&srq->live) ? srq :
									 NULL;
}

static inline const struct rnic_counter *rnic_counter_get(const struct rnic *r,
							  uint32_t id)
{
	const struct rnic_counter *c = &r->sh->counter[id % RNIC_MAX_COUNTERS];

	return id < RNIC_MAX_COUNTERS && load_acquire(&c->live) ? c : NULL;
}

static inline uint32_t rnic_mtu_bytes(uint32_t mtu)
{
	return 128u << mtu;
}

/* Packets that @len bytes take, without a division. */
static inline uint32_t rnic_mtu_packets(uint32_t mtu, uint64_t len)
{
	return (len + rnic_mtu_bytes(mtu) - 1) >> (mtu + 7);
}

static inline uint32_t rnic_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & RNIC_PSN_MASK;
}

/* a - b in the circular 24-bit space. */
static inline int32_t rnic_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline bool rnic_is_xrc(const struct rnic_qp *qp)
{
	return unlikely(qp->init.type - RNIC_QPT_XRC_SEND <= 1u);
}

/* Are requests answered? */
static inline bool rnic_reliable(const struct rnic_qp *qp)
{
	return likely(qp->init.type == RNIC_QPT_RC) || rnic_is_xrc(qp);
}

static inline bool rnic_uses_srq(const struct rnic_qp *qp)
{
	return qp->init.srqn || qp->init.type == RNIC_QPT_XRC_RECV;
}

/* The SRQ of the receive in hand, or that is to be taken. */
static inline struct rnic_srq *rnic_resp_srq(const struct rnic *r,
					     const struct rnic_qp *qp)
{
	return rnic_srq_get(r, load_relaxed(&qp->resp.srqn));
}

/* A message is one packet that says itself where it goes. */
static inline bool rnic_datagrams(const struct rnic_qp *qp)
{
	const uint32_t types = 1u << RNIC_QPT_UD | 1u << RNIC_QPT_RAW_PACKET |
			       1u << RNIC_QPT_WQ | 1u << RNIC_QPT_HASH;

	return unlikely(types & 1u << qp->init.type);
}

/* ---- raw packets ---------------------------------------------------- */

/* A whole frame in memory of ours, and what it says. */
struct rnic_frame {
	uint8_t *data;
	uint32_t len;
	uint32_t l3, l4; /* offsets of the outer headers, 0: none */
	uint32_t l4_len;
	struct rnic_flow_key key;
};

void rnic_frame_parse(struct rnic_frame *frame, uint8_t *data, uint32_t len);
/* IPv4 header and TCP or UDP: are they right?  Writes them. */
bool rnic_frame_checksums_ok(const struct rnic_frame *frame);
void rnic_frame_write_checksums(struct rnic_frame *frame);
/* Receive-side scaling: which entry of a table of a power of two. */
uint32_t rnic_frame_hash(const struct rnic_frame *frame,
			 const struct rnic_hash *hash);
/* Bit-serial Toeplitz hash; @len at most RNIC_HASH_KEY - 4. */
uint32_t rnic_toeplitz(const uint8_t key[RNIC_HASH_KEY], const uint8_t *data,
		       uint32_t len);

/* Who gets a frame, and the tag of the rule that says so. */
struct rnic_flow_dest {
	uint32_t qpn;
	uint32_t tag;
};
/* Counts, too; at most RNIC_MAX_COPIES. */
uint32_t rnic_flow_match(struct rnic *r, const struct rnic_frame *frame,
			 struct rnic_flow_dest dest[]);
/* The work queue of a RNIC_QPT_HASH queue pair that gets it, or NULL. */
struct rnic_qp *rnic_hash_pick(const struct rnic *r, const struct rnic_qp *qp,
			       const struct rnic_frame *frame);
const struct rnic_wq_table *rnic_wq_table_of(const struct rnic *r,
					     uint32_t ctx, uint32_t table);
/* modify_qp without the question whose kind it is. */
int rnic_qp_change(struct rnic *r, struct rnic_qp *qp,
		   const struct rnic_qp_attr *attr, uint32_t mask);

/* Bytes of a GRH at the head of a datagram's receive buffer. */
#define RNIC_GRH 40u
#define RNIC_MULTICAST_QPN 0xffffffu

/*
 * What a datagram's address handle says, as of one moment.  False and why:
 * no such handle, or not of this QP's protection domain.
 */
bool rnic_ah_get(const struct rnic *r, const struct rnic_qp *qp, uint32_t ah,
		 struct rnic_ah *copy, uint32_t *syndrome);
/* Ports have gone down or come up: where do paths lead now? */
void rnic_qp_paths_changed(struct rnic *r);
void rnic_ah_paths_changed(struct rnic *r);
bool rnic_port_active(const struct rnic *r, uint32_t dev, uint32_t port);
/* Devices that have the address on a port that is up, as a bit mask. */
uint32_t rnic_av_devices(const struct rnic *r, const struct rnic_av *av);
bool rnic_av_ok(const struct rnic *r, uint32_t dev, const struct rnic_av *av);
/* The member of @ah's group at or after *@it; NULL: no more. */
struct rnic_qp *rnic_mcast_next(const struct rnic *r, const struct rnic_ah *ah,
				uint32_t *it);
/* All groups, for a QP that goes. */
void rnic_mcast_leave(struct rnic *r, struct rnic_qp *qp);

/* ---- memory --------------------------------------------------------- */

struct rnic_sgl_entry {
	const struct rnic_mr *mr; /* NULL: va is a pointer of this process */
	uint64_t va;
	uint32_t len;
};

#define RNIC_SGL_MAX (SF_MAX_RECV_SGE + 1)
struct rnic_sgl {
	uint64_t total;
	uint32_t n;
	struct rnic_sgl_entry v[RNIC_SGL_MAX];
};

/*
 * The region that @key names, if @pdn may use [va, va + len) with @access;
 * else NULL and the reason.  Valid while the caller holds a lock of a QP of
 * that protection domain: rnic_mr_destroy() passes through all of them.
 */
const struct rnic_mr *rnic_mr_check(const struct rnic *r, uint32_t key,
				    uint32_t pdn, uint64_t va, uint64_t len,
				    uint32_t access, uint32_t *syndrome);

/* Passes through both locks of all QPs of the PD; false: somebody stays. */
bool rnic_pd_quiesce(struct rnic *r, uint32_t pdn);
struct rnic_pd *rnic_pd_get(const struct rnic *r, uint32_t ctx, uint32_t pdn);
/* Windows, regions, device memory, in this order.  0 or not: some stay. */
int rnic_memory_reap(struct rnic *r, uint32_t ctx);

/* What BIND_MW asks for. */
struct rnic_bind {
	uint32_t key;  /* that the window is to have */
	uint32_t lkey; /* of the region */
	uint32_t access;
	uint64_t addr; /* in the region */
	uint64_t len;  /* 0: opens nothing, type 1 only */
};

/* ... has begun, but somebody stays: come again. */
#define RNIC_BIND_LATER (~0u)
/*
 * Under req.lock.  @begun says which WQE has passed its checks: it comes to its
 * end whoever goes on with it, and @index is this one's.  0, a syndrome or
 * RNIC_BIND_LATER.
 */
uint32_t rnic_mw_bind(struct rnic_call *call, struct rnic_qp *qp,
		      const struct rnic_bind *bind, uint64_t *begun,
		      uint64_t index);
uint32_t rnic_mw_invalidate(struct rnic_call *call, struct rnic_qp *qp,
			    uint32_t key, uint64_t *begun, uint64_t index);
/* Under resp.lock: the message that ends with @psn invalidates @key. */
uint32_t rnic_mw_remote_invalidate(struct rnic *r, struct rnic_qp *qp,
				   uint32_t key, uint32_t psn);

static inline void rnic_sgl_init(struct rnic_sgl *sgl)
{
	sgl->n = 0;
	sgl->total = 0;
}

static inline void rnic_sgl_add(struct rnic_sgl *sgl, const struct rnic_mr *mr,
				uint64_t va, uint32_t len)
{
	sgl->v[sgl->n++] = (struct rnic_sgl_entry){mr, va, len};
	sgl->total += len;
}

/*
 * Copies @len bytes between two lists; the last bytes of each contiguous piece
 * are stored last, so that a reader who polls them finds all others.
 */
enum rnic_copy_result rnic_sgl_copy(struct rnic *r, const struct rnic_sgl *dst,
				    uint64_t dst_off,
				    const struct rnic_sgl *src,
				    uint64_t src_off, uint64_t len);

enum rnic_atomic_op {
	RNIC_CAS,
	RNIC_FADD,
	RNIC_SWAP
};

/*
 * One 8-byte atomic on registered memory; @va is 8-byte aligned.  @slot gets
 * what was there before.
 */
enum rnic_copy_result rnic_atomic(struct rnic *r, const struct rnic_mr *mr,
				  uint64_t va, enum rnic_atomic_op op,
				  uint64_t arg, uint64_t compare,
				  struct rnic_atomic_slot *slot);
/* ... that adds to a word of the arena. */
enum rnic_copy_result rnic_atomic_arena(struct rnic *r, uint64_t off,
					uint64_t addend,
					struct rnic_atomic_slot *slot);
/* Whoever did that atomic died in there: was it done? */
void rnic_atomic_settle(struct rnic *r, const struct rnic_atomic_slot *slot);

/* ---- packets and links ---------------------------------------------- */

enum rnic_packet_op {
	RNIC_PKT_NONE,
	RNIC_PKT_SEND,
	RNIC_PKT_WRITE,
	RNIC_PKT_READ,
	RNIC_PKT_CAS,
	RNIC_PKT_FADD,
	RNIC_PKT_ATOMIC_WRITE,
	/* answers */
	RNIC_PKT_ACK,
	RNIC_PKT_NAK, /* syndrome says which, RNR too */
	RNIC_PKT_READ_RESPONSE,
	RNIC_PKT_ATOMIC_RESPONSE,
	RNIC_PKT_LOCAL_FAULT, /* direct link: requester's memory is bad */
};

enum rnic_packet_flags {
	RNIC_PKT_FIRST = 1 << 0,
	RNIC_PKT_LAST = 1 << 1,
	RNIC_PKT_IMM = 1 << 2,
	RNIC_PKT_SOLICITED = 1 << 3,
	RNIC_PKT_UNRELIABLE = 1 << 4, /* nobody answers */
	RNIC_PKT_RAW = 1 << 5, /* a frame, steered by what it says */
	RNIC_PKT_CHECKSUMS = 1 << 6, /* to be filled in on the way */
	RNIC_PKT_XRC = 1 << 7,
	RNIC_PKT_INV = 1 << 8, /* imm is a key to be invalidated */
};

/* AETH syndromes (IBTA vol. 1, 9.7.5.2.1). */
#define RNIC_AETH_ACK 0x1f /* credits: not limited */
#define RNIC_AETH_RNR 0x20 /* | timer code */
#define RNIC_AETH_NAK_PSN 0x60
#define RNIC_AETH_NAK_INVALID 0x61
#define RNIC_AETH_NAK_ACCESS 0x62
#define RNIC_AETH_NAK_OP 0x63

/*
 * Consecutive packets of one message (on a wire: one).  The payload is a
 * reference; a link that leaves the host serialises it.
 */
struct rnic_packet {
	uint8_t op;
	uint8_t syndrome; /* answers: AETH */
	uint16_t flags;
	uint32_t src_qpn, dest_qpn;
	uint32_t psn; /* of the first packet; answers: of the last answered */
	uint32_t npkts;
	uint32_t msn;
	uint32_t imm;
	uint32_t rkey;
	uint32_t srqn; /* XRC: SRQ number */
	uint32_t member; /* multicast: who is next, see rnic_mcast_next() */
	uint64_t va;
	uint32_t len; /* payload bytes here; READ: bytes wanted */
	uint32_t dma_len; /* WRITE, first: bytes of the whole message */
	const struct rnic_ah *ah; /* datagrams: where to; rkey is the Q_Key */
	const struct rnic_frame *frame; /* raw, at the receiver; imm: tag */
	uint64_t arg0, arg1; /* atomics: swap or add, compare; answer: old */
	const struct rnic_sgl *payload;
	uint64_t payload_off;
	/* Where the requester wants the answer's payload. */
	const struct rnic_sgl *sink;
	uint64_t sink_off;
};

enum rnic_link_result {
	RNIC_LINK_ANSWERED, /* *answer is filled in */
	RNIC_LINK_SENT, /* an answer may come through rnic_receive() */
	/* Some of a group have it; again, for those from answer->member on. */
	RNIC_LINK_PART,
};

/* How the responder hands out an answer, under its lock. */
struct rnic_reply {
	/* Not OK: whose memory failed while an answer's payload moved. */
	enum rnic_copy_result (*send)(struct rnic_reply *reply,
				      const struct rnic_packet *answer);
};

struct rnic_link_ops {
	uint32_t burst; /* payload bytes in one packet; 0: the path MTU */
	uint32_t window; /* packets that may wait for an answer */
	enum rnic_link_result (*send)(struct rnic_call *call,
				      struct rnic_qp *qp,
				      const struct rnic_packet *pkt,
				      struct rnic_packet *answer);
};

extern const struct rnic_link_ops rnic_link_direct;

/* A request for @qp, whose resp.lock is held. */
void rnic_responder_receive(struct rnic_call *call, struct rnic_qp *qp,
			    const struct rnic_packet *pkt,
			    struct rnic_reply *reply);
/* An answer for @qp, outside of any lock (links that answer later). */
void rnic_requester_receive(struct rnic_call *call, struct rnic_qp *qp,
			    const struct rnic_packet *answer);

/* ---- requester, responder, completion ------------------------------- */

enum rnic_mark {
	RNIC_MARK_RING = 1 << 0,
	RNIC_MARK_RNR_OVER = 1 << 1, /* the peer has posted a receive */
};

/* Runs the send queue, or leaves @mark to whoever is running it. */
void rnic_requester_kick(struct rnic_call *call, struct rnic_qp *qp,
			 uint32_t mark);
void rnic_requester_reset(struct rnic *r, struct rnic_qp *qp, uint64_t start);
void rnic_requester_start(struct rnic_qp *qp, uint32_t psn);
/* In SQD: all that was begun is complete. */
bool rnic_sq_drained(const struct rnic_qp *qp);
/* The same, and nothing waits to be sent again. */
bool rnic_sq_idle(const struct rnic_qp *qp);
void rnic_requester_repair(struct rnic *r, struct rnic_qp *qp);
/*
 * SQE to RTS, once all that failed has its CQE: the line has no error any more.
 * False: not now, or the QP is in ERR.
 */
bool rnic_requester_resume(struct rnic *r, struct rnic_qp *qp);

/* Flushes the receive queue of a QP in ERR. */
void rnic_responder_kick(struct rnic_call *call, struct rnic_qp *qp);
void rnic_responder_reset(struct rnic *r, struct rnic_qp *qp);
void rnic_responder_start(struct rnic_qp *qp, uint32_t psn);
void rnic_responder_repair(struct rnic *r, struct rnic_qp *qp);
/* Lock or trylock with repair; false: busy. */
bool rnic_responder_lock(struct rnic *r, struct rnic_qp *qp);
bool rnic_requester_lock(struct rnic *r, struct rnic_qp *qp);
void rnic_responder_unlock(struct rnic_call *call, struct rnic_qp *qp);

enum rnic_take {
	RNIC_TAKEN,
	RNIC_TAKE_EMPTY,
	RNIC_TAKE_GARBAGE, /* the queue holds impossible values */
	RNIC_TAKE_BUSY,	   /* not now */
};

/* A ring of receive descriptors, as it stands. */
struct rnic_recv_ring {
	uint64_t off;
	uint64_t doorbell;
	uint64_t head;
	uint32_t log_depth, log_stride;
};

/*
 * Copies the descriptor at the ring's head to resp.rqe_*; not taken yet.  Its
 * slot is the poster's again once the head has moved.
 */
enum rnic_take rnic_recv_peek(const struct rnic *r, struct rnic_responder *resp,
			      const struct rnic_recv_ring *ring);
/* What the doorbell cell says, or @head if there is none. */
uint64_t rnic_recv_producer(const struct rnic *r, uint64_t doorbell,
			    uint64_t head);

/* Takes a receive from SRQ resp.srqn of @qp, whose resp.lock is held. */
enum rnic_take rnic_srq_take(struct rnic_call *call, struct rnic_qp *qp);
/* From now on rnic_srq_ring() wakes the peer of @qp. */
void rnic_srq_wait(const struct rnic *r, struct rnic_qp *qp);
/* Passes through the lock, and so the repair. */
void rnic_srq_pass(struct rnic *r, uint32_t srqn);
void rnic_srq_raise(struct rnic *r, const struct rnic_event *event);
void rnic_srq_repair_events(struct rnic_call *call, uint32_t srqn);

#define RNIC_EVENT_NONE 254u

/*
 * Takes and drops both locks of a QP in use, one after the other: who was
 * inside has left, and who rang meanwhile is served.  False: somebody stays.
 */
bool rnic_qp_pass(struct rnic_call *call, struct rnic_qp *qp);
/* The QP that @handle of @ctx names, or NULL. */
struct rnic_qp *rnic_qp_of(const struct rnic *r, uint32_t ctx, uint32_t handle);
#define RNIC_CTX_NOBODY (~0u)  /* owner of XRC targets */
#define RNIC_QP_REF (1u << 31) /* in a handle: number of an open */
struct rnic_qp_ref *rnic_qp_ref_get(const struct rnic *r, uint32_t ctx,
				    uint32_t handle);
int rnic_qp_ref_take(struct rnic *r, uint32_t ctx, uint32_t xrcd,
		     uint64_t user_handle, uint32_t *handle);
void rnic_qp_ref_drop(struct rnic *r, struct rnic_qp_ref *ref);
/* @event goes to all who have @qp open; resp.lock is held. */
void rnic_qp_ref_raise(struct rnic *r, const struct rnic_qp *qp,
		       const struct rnic_event *event);
/* No target has a receive of @srqn in hand or uses it now.  False: busy. */
bool rnic_xrc_forget_srq(struct rnic *r, uint32_t srqn);
/* Of @ctx, or NULL. */
struct rnic_xrcd *rnic_xrcd_get(const struct rnic *r, uint32_t ctx,
				uint32_t xrcd);
/* Which packets a QP sends and takes. */
#define RNIC_PKT_TRANSPORT (RNIC_PKT_UNRELIABLE | RNIC_PKT_XRC)

static inline uint8_t rnic_transport(const struct rnic_qp *qp)
{
	if (likely(qp->init.type == RNIC_QPT_RC))
		return 0;
	return rnic_is_xrc(qp) ? RNIC_PKT_XRC : RNIC_PKT_UNRELIABLE;
}

/* State to ERR, once; queues are flushed when no lock is held. */
void rnic_qp_fail(struct rnic_call *call, struct rnic_qp *qp, uint32_t event);
void rnic_sq_fail(struct rnic_call *call, struct rnic_qp *qp);

static inline uint64_t rnic_cq_ring(const struct rnic_cq *cq)
{
	return cq->ring & ~(uint64_t)(RNIC_PAGE - 1);
}

static inline uint32_t rnic_cq_log_depth(const struct rnic_cq *cq)
{
	return cq->ring & (RNIC_PAGE - 1);
}

enum rnic_push_result { RNIC_PUSHED, RNIC_PUSH_BUSY, RNIC_PUSH_OVERRUN };

/* @cqe->word comes without lap. */
enum rnic_push_result rnic_cq_push(struct rnic_call *call, uint32_t cqn,
				   struct sf_cqe *cqe,
				   struct rnic_intent *intent);
/* Was the CQE of @intent written before its owner died? */
bool rnic_cq_pushed(struct rnic *r, uint32_t cqn,
		    const struct rnic_intent *intent);
/*
 * Hands an event of this CQ to the host and counts it, as one step before the
 * eyes of rnic_cq_destroy().
 */
void rnic_cq_raise(struct rnic *r, const struct rnic_event *event);
void rnic_qp_event(struct rnic_call *call, const struct rnic_qp *qp,
		   uint32_t type);
void rnic_qp_raise(struct rnic_call *call, const struct rnic_event *event);
void rnic_qp_repair_events(struct rnic_call *call, struct rnic_qp *qp);
/* Its timer has run; when is the next due? */
uint64_t rnic_cq_tick(struct rnic_call *call, uint32_t cqn, uint64_t now);
void rnic_cq_repair_events(struct rnic_call *call, uint32_t cqn);

/* The peer of @qp waits for a receive no longer, if it did. */
void rnic_wake_peer(struct rnic_call *call, struct rnic_qp *qp);

/* ---- pools (control only) ------------------------------------------- */

/* Index of a free entry, or ENOMEM.  @live(r, i) tells whether it is taken. */
int rnic_pool_take(struct rnic *r, struct rnic_pool *pool, uint32_t size,
		   bool (*live)(const struct rnic *r, uint32_t i),
		   uint32_t *index);

void rnic_timer_arm(struct rnic *r, struct rnic_qp *qp, uint64_t deadline);
void rnic_timer_soon(struct rnic *r, struct rnic_qp *qp);

void rnic_counters_add(struct rnic_counters *sum,
		       const struct rnic_counters *add);

#endif
