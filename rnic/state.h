/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What lies in the arena.  Processes map it at different addresses: numbers
 * only, no pointers.  Every number that is read from here is checked before it
 * is used as an index: another process may have been killed in mid-store.
 *
 * Who writes what:
 *  - identity and attributes: control calls only, while the object is quiet;
 *  - `req`: whoever holds req.lock; `resp`: whoever holds resp.lock;
 *  - `state` of a QP: atomic; RTS -> ERR by anybody, all else by control.
 *
 * Lock order: requester < bind < responder < SRQ < CQ, at most one of each; an
 * atomic's lock is taken in a responder's.  A responder never takes a requester
 * lock.
 */
#ifndef RNIC_STATE_H
#define RNIC_STATE_H

#include "rnic/rnic.h"
#include "scalefabric/sf_hw.h"

#define RNIC_MAGIC 0x534652410000ULL /* "SFRA" */
#define RNIC_STATE_VERSION 10

#define RNIC_QPN_INDEX_BITS 14
#define RNIC_QPN_MASK 0xffffffu
#define RNIC_PSN_MASK 0xffffffu
#define RNIC_CACHE_LINE 64

_Static_assert(1 << RNIC_QPN_INDEX_BITS == RNIC_MAX_QP, "QPN holds an index");

/* Where work requests with SF_WQE_COUNTER count. */
struct rnic_counter {
	uint32_t live;
	uint32_t ctx;
	uint32_t pdn;
	uint32_t reserved;
	uint64_t memory; /* arena offset of a page: struct sf_counter at 0 */
};

struct rnic_pd {
	uint32_t live;
	uint32_t ctx;
	uint32_t dev;
	uint32_t users;	    /* MRs, MWs, AHs, SRQs, counters and QPs */
	uint32_t windows;   /* MWs */
	uint32_t lock_made; /* once, for all users of this entry */
	/* Taken to bind one of its windows, before a responder's. */
	struct rnic_lock bind_lock;
};

enum rnic_key_kind {
	RNIC_KEY_REGION,
	RNIC_KEY_WINDOW_1, /* any QP of the PD */
	RNIC_KEY_WINDOW_2, /* one QP, that of the bind */
	RNIC_KEY_ENDING,   /* a window that can not be bound any more */
};

/* In access: may be named by who posts it.  Windows are not. */
#define RNIC_LKEY (1u << 7)

/*
 * A region, or a window.  What is bound to a window is a copy of the part of
 * the region that it opens: it is used like one.
 */
struct rnic_mr {
	/* 0: not valid; stored last at create and bind, first at the end */
	uint32_t key;
	uint32_t last_key; /* number of the object, or of the previous one */
	uint32_t pdn;
	uint32_t access : 8;
	uint32_t qpn : 24; /* window of type 2: the only one, else 0 */
	uint32_t ctx;
	uint32_t space;
	uint8_t nseg;
	uint8_t live;	 /* taken, perhaps not valid yet or any more */
	uint8_t kind;	 /* enum rnic_key_kind */
	uint8_t tag;	 /* window: of the last key that it had */
	uint32_t parent; /* of a window its region, of a region its DM */
	uint64_t iova;
	uint64_t len;
	uint64_t addr;
	struct rnic_mr_seg seg[RNIC_MR_SEGS];
};

struct rnic_dm {
	uint32_t live;
	uint32_t ctx;
	uint32_t dev;
	uint32_t users; /* MRs */
	uint64_t off;
	uint64_t len;
};

struct rnic_cq {
	/* identity */
	uint32_t live;
	uint32_t ctx;
	uint32_t dev;
	uint32_t channel;
	uint32_t users; /* queue pairs' ends */
	uint32_t timestamps;
	uint64_t user_handle;
	uint64_t ctrl; /* arena offset of struct sf_cq_ctrl */

	/* under lock */
	struct rnic_lock lock;
	uint64_t ring; /* arena offset of a page + log2 of the depth */
	uint32_t error; /* overrun: 1, | RNIC_DUE */
	/*
	 * Index of the next CQE.  Stored after the CQE's word: a slot at or
	 * above it that carries its lap was written by one who died before
	 * this store, and counts.
	 */
	uint64_t producer;
	uint64_t intent; /* of who is writing a CQE: arena offset, or 0 */
	uint64_t solicited; /* index after the last solicited CQE */

	/* no lock: set by the consumer, taken by whoever raises the event */
	uint64_t armed; /* arm word, 0: not armed */
	uint64_t told; /* CQEs below it have raised their event */
	uint32_t moderation; /* period << 16 | count, 0: none; one store */
	uint64_t deadline; /* of an event that is held back, 0: none is */
	uint32_t pending; /* an event is due: set before disarming */

	uint32_t comp_events; /* raised, under lock */
	uint32_t async_events;
	uint32_t lock_made; /* once, for all users of this entry */
} __attribute__((aligned(RNIC_CACHE_LINE)));

struct rnic_ah {
	uint32_t handle; /* 0: not valid; stored last, and first at destroy */
	uint32_t last; /* of the previous user of this entry */
	uint32_t live;
	uint32_t pdn;
	uint32_t ctx;
	uint32_t dev;
	uint32_t devs; /* bit mask: devices that have the address */
	struct rnic_av av;
};

/* One QP in one multicast group. */
struct rnic_mcast {
	uint32_t qpn; /* 0: free */
	uint32_t mlid;
	uint8_t mgid[16];
};

/* One steering rule.  Control writes it while it is not valid. */
struct rnic_flow {
	uint32_t handle; /* 0: not valid; stored last, and first at destroy */
	uint32_t last; /* of the previous user of this entry */
	uint32_t live;
	uint32_t ctx;
	uint32_t dev;
	uint32_t rank; /* the lowest one that matches has its say */
	struct rnic_flow_attr attr;
};

struct rnic_flow_counters {
	uint32_t live;
	uint32_t ctx;
	uint32_t dev;
	uint32_t users; /* rules */
	struct rnic_flow_count count; /* atomic */
};

/* Work queues by the low bits of a frame's hash. */
struct rnic_wq_table {
	uint32_t live;
	uint32_t ctx;
	uint32_t users; /* queue pairs */
	uint32_t reserved;
	struct rnic_wq_table_attr attr;
};

/* One open of an XRC domain. */
struct rnic_xrcd {
	uint32_t live;
	uint32_t ctx;
	uint32_t dev;
	uint32_t users;	   /* SRQs, and opens of QPs */
	uint32_t domain;   /* one number for all opens of a domain */
	uint32_t has_file; /* else nobody else can open it */
	uint64_t fs, ino;
};

/* One open of an XRC target QP. */
struct rnic_qp_ref {
	uint32_t qpn; /* 0: free */
	uint32_t ctx;
	uint32_t xrcd;
	uint32_t async_events; /* raised, under resp.lock of the QP */
	uint64_t user_handle;
};

struct rnic_srq {
	/* identity */
	uint32_t live;
	uint32_t ctx;
	uint32_t dev;
	uint32_t pdn;
	uint32_t xrcd;	 /* XRC: the open, ... */
	uint32_t domain; /* ... its domain, else 0 ... */
	uint32_t cqn;	 /* ... and where its receives complete */
	uint32_t users; /* QPs */
	uint32_t log_stride;
	uint64_t user_handle;
	uint64_t doorbell; /* arena offset */

	/* under lock */
	struct rnic_lock lock;
	uint64_t ring; /* arena offset of a page + log2 of the depth */
	/*
	 * Next descriptor to be taken.  Stored after the taker's rq_head: a
	 * taker that has this one in hand died before this store.
	 */
	uint64_t head;
	uint32_t taker; /* QPN */
	uint32_t limit; /* armed, 0: not */
	uint32_t error; /* the ring holds garbage: 1, | RNIC_DUE */
	uint32_t async_events; /* raised */

	/* no lock */
	uint32_t waiting; /* somebody waits for a receive */
	uint32_t pending; /* a limit event is due: set before disarming */
	uint32_t lock_made; /* once, for all users of this entry */
} __attribute__((aligned(RNIC_CACHE_LINE)));

/*
 * Set before a CQE is written, cleared after all that belongs to it is stored.
 * If its owner dies in between, the CQE is there, unless the owner died in the
 * CQ's lock: whoever gets that lock next finds no CQE and clears the intent.
 */
struct rnic_intent {
	uint64_t cqe; /* index */
	uint32_t set;
};

/*
 * In a word that says what has happened: its event is due.  Taken away when it
 * was raised, so that others raise it for one who died on the way.
 */
#define RNIC_DUE 0x100u

/* A position in the send queue and the PSN of its first packet. */
struct rnic_position {
	uint64_t index;
	uint32_t psn;
	uint32_t reserved;
};

enum rnic_wait {
	RNIC_WAIT_NONE,
	RNIC_WAIT_RNR, /* the peer had no receive posted */
	RNIC_WAIT_ACK, /* not all is answered; sending may go on meanwhile */
	RNIC_WAIT_CQE, /* answered, but its CQE could not be written yet */
};

enum rnic_atomic_state {
	RNIC_ATOMIC_NONE,
	RNIC_ATOMIC_BEGUN, /* perhaps done: the lock's next holder sees */
	RNIC_ATOMIC_DONE,
};

/* Result of an atomic, for a repeated request (IBTA vol. 1, 9.4.5). */
struct rnic_atomic_slot {
	uint64_t value; /* what was there before */
	uint32_t psn;
	uint16_t state; /* enum rnic_atomic_state */
	uint16_t lock; /* under which it is done */
};

struct rnic_requester {
	struct rnic_lock lock;
	uint32_t mark; /* somebody rang while the lock was held */
	uint32_t wait; /* enum rnic_wait */
	uint64_t deadline; /* of the wait */

	/*
	 * Oldest WQE that is not complete, and its first PSN.  Two copies, the
	 * valid one named by `una_sel`: one store moves both.
	 */
	struct rnic_position una[2];
	uint32_t una_sel;

	/* Next to be sent.  Lost with the lock holder: falls back to una. */
	uint32_t next_psn;
	uint64_t cur; /* WQE */
	uint64_t cur_off; /* bytes of it that were sent */
	uint32_t cur_member; /* multicast: those before this one have it */

	struct rnic_intent intent; /* CQE ... */
	uint64_t intent_wqe; /* ... of this one, which was una.index */

	uint8_t retry_left;
	uint8_t rnr_left;
	uint8_t fail_status; /* of WQE una.index, when state became ERR */
	uint8_t failed; /* line's `failed` was stored */
	/* SQ_DRAINED: 1 if wanted, then its type | RNIC_DUE, then its type. */
	uint32_t drained;
	uint32_t fail_syndrome;
	/* All below is answered: una.psn <= acked_psn <= next_psn. */
	uint32_t acked_psn;
	uint32_t sent_psn; /* highest next_psn that there was */
	uint32_t best_psn; /* highest acked_psn that there was */
	uint32_t reads; /* READs and atomics sent and not complete */
	uint32_t went_back; /* for a lost packet, and nothing came since */
	/*
	 * WQE that has begun what is not begun twice: to change a window, it
	 * comes to its end; unreliable, to be sent.
	 */
	uint64_t begun;
	struct rnic_counters counters;
	/* Counted last; .psn: low bits of the WQE's index. */
	struct rnic_atomic_slot counted;
} __attribute__((aligned(RNIC_CACHE_LINE)));

/* Atomics on the words that hash to it are done under it, one at a time. */
struct rnic_atomic_lock {
	struct rnic_lock lock;
	uint64_t slot; /* arena offset of that of the one in work, or 0 */
	struct rnic_ref at; /* and where it works */
};

struct rnic_responder {
	struct rnic_lock lock;
	uint32_t mark; /* flush wanted while the lock was held */
	uint32_t nak_sent; /* one NAK per gap */
	/* How far requests have come: one store moves all of it. */
	union {
		struct {
			uint32_t epsn : 24; /* expected PSN */
			uint32_t placed_sel : 8;
			uint32_t msn : 24; /* completed messages */
			/* Packet op of the message that is arriving, or 0. */
			uint32_t in_message : 8;
		};
		uint64_t progress;
	};
	/* Bytes of that message; the valid one is named by `placed_sel`. */
	uint64_t placed[2];

	struct rnic_intent intent; /* CQE of `rqe` ... */
	uint64_t intent_progress; /* ... and what progress is then */

	uint64_t write_va; /* RDMA WRITE: where the next byte goes */
	uint32_t write_len; /* and how many may follow */
	uint32_t write_rkey;

	uint64_t rq_head; /* next descriptor to be taken */
	uint64_t rq_done; /* those below have their CQEs; the other is `rqe` */
	uint32_t rnr_waiter; /* the peer waits for a receive, atomic */
	uint32_t patient; /* unreliable: who sends waits for one, once */
	uint32_t atomics; /* next of atomic[] */
	struct rnic_atomic_slot atomic[RNIC_MAX_RD_ATOMIC];

	/* Key that the message which ends with this PSN invalidates. */
	uint32_t inv_key;
	uint32_t inv_psn;

	uint32_t fail_status; /* of `rqe`, when state became ERR */
	uint32_t fail_syndrome;
	uint32_t last_wqe; /* SRQ: LAST_WQE_REACHED, perhaps RNIC_DUE */
	/*
	 * Where `rqe` comes from, 0: the QP's own queue.  An XRC target goes
	 * from one to another, but never with a receive in hand.
	 */
	uint32_t srqn;
	uint32_t rqe_cookie;
	uint32_t rqe_nsge;
	uint64_t rqe_index; /* where it was taken from */
	struct sf_sge rqe_sge[SF_MAX_RECV_SGE];
	struct rnic_counters counters;
} __attribute__((aligned(RNIC_CACHE_LINE)));

struct rnic_qp {
	uint32_t qpn; /* 0: not live */
	uint32_t state; /* enum rnic_qp_state, atomic */
	uint32_t peer_dev; /* device that the path leads to, or ~0 */
	uint32_t link;
	uint32_t ctx;	   /* ~0: XRC target, see struct rnic_qp_ref */
	uint32_t last_qpn; /* of the previous user of this entry */

	uint64_t sq; /* arena offsets */
	uint64_t line;
	uint64_t rq;
	uint64_t sq_doorbell;
	uint64_t rq_doorbell;
	uint64_t queues;

	struct rnic_qp_init init;
	uint32_t recv_pdn; /* of the SRQ, else the QP's own */
	uint32_t mcasts; /* groups that it is in */
	uint32_t users; /* steering rules and indirection tables */
	uint32_t domain; /* XRC target */
	uint32_t refs;	 /* ... and how often it is open */
	struct rnic_qp_attr attr;
	uint64_t queues_len;
	uint32_t async_events; /* raised, under resp.lock */
	uint32_t fatal; /* one affiliated error per life, | RNIC_DUE; atomic */
	uint32_t comm_est; /* a message came in RTR: its type, | RNIC_DUE */

	struct rnic_requester req;
	struct rnic_responder resp;
} __attribute__((aligned(RNIC_CACHE_LINE)));

struct rnic_port {
	struct rnic_port_info info;
	/* Of QPs that were destroyed or reset since. */
	struct rnic_counters counters;
};

struct rnic_device {
	struct rnic_device_info info;
	struct rnic_port port[RNIC_MAX_PORTS];
};

/* Allocation of numbers: control only. */
struct rnic_pool {
	uint32_t used;
	uint32_t high; /* entries at and above were never used */
	uint32_t next; /* where the search begins: numbers rotate */
};

#define RNIC_ATOMIC_LOCKS 64

struct rnic_shared {
	uint64_t magic;
	uint32_t version;
	uint32_t size_of_state;
	uint64_t arena_size;
	uint32_t devices;
	uint32_t reserved;
	struct rnic_device device[RNIC_MAX_DEVICES];

	struct rnic_pool pds, keys, dms, cqs, srqs, qps, ahs, mcasts, counters;
	struct rnic_pool flows, flow_counters, wq_tables;
	struct rnic_pool xrcds, qp_refs;
	uint32_t last_domain;

	/* Timers: one bit a QP, set before the deadline is published. */
	uint64_t timer_bits[RNIC_MAX_QP / 64];

	/* The same of CQs that hold back an event. */
	uint64_t cq_timer_bits[RNIC_MAX_CQ / 64];

	struct rnic_atomic_lock atomic_lock[RNIC_ATOMIC_LOCKS];

	struct rnic_pd pd[RNIC_MAX_PD];
	struct rnic_ah ah[RNIC_MAX_AH];
	struct rnic_mcast mcast[RNIC_MAX_MCAST];
	struct rnic_mr mr[RNIC_MAX_KEYS];
	uint32_t windows; /* so many of them are */
	struct rnic_dm dm[RNIC_MAX_DM];
	struct rnic_counter counter[RNIC_MAX_COUNTERS];
	struct rnic_xrcd xrcd[RNIC_MAX_XRCD];
	struct rnic_qp_ref qp_ref[RNIC_MAX_QP_REF];
	struct rnic_cq cq[RNIC_MAX_CQ];
	struct rnic_flow flow[RNIC_MAX_FLOW];
	struct rnic_flow_counters flow_count[RNIC_MAX_FLOW_COUNTERS];
	struct rnic_wq_table wq_table[RNIC_MAX_WQ_TABLE];
	struct rnic_srq srq[RNIC_MAX_SRQ];
	struct rnic_qp qp[RNIC_MAX_QP];
};

_Static_assert(sizeof(struct rnic_shared) <= RNIC_ARENA_DYNAMIC,
	       "the tables fit before the dynamic part");

#endif
