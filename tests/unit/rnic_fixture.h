/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host for tests of the RNIC core: one arena in a memory file, virtual time,
 * locks that check the lock order and fail on demand, pages that are counted,
 * an address space that only the host can reach.  And, on top of it, two ends
 * (PD, CQs, QP, posting, polling) that a test can talk about in a few words.
 */
#ifndef RNIC_FIXTURE_H
#define RNIC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "rnic/internal.h"

#define FX_ARENA (256ull << 20)
#define FX_MAX_EVENTS 512
#define FX_MAX_ALLOCS 512

/* Number and extent of the address space behind ops->copy. */
#define FX_FAR 7u
#define FX_FAR_BASE 0x7f0000000000ull
#define FX_FAR_SIZE (4u << 20)

struct fx;

/* One process's look at the arena. */
struct fx_view {
	struct fx *fx;
	struct rnic r;
};

struct fx_alloc {
	uint64_t off, len;
	int test; /* the test's own memory, not the core's */
};

struct fx {
	struct fx_view view[2];
	struct rnic *r; /* view[0] */
	struct rnic_host_ops ops;
	int fd;

	uint64_t now;
	uint64_t deadline; /* earliest that was asked for, or UINT64_MAX */
	uint64_t armed;	   /* deadline that was asked for last */
	unsigned int timers;

	struct rnic_event event[FX_MAX_EVENTS];
	unsigned int events, events_seen;

	struct fx_alloc alloc[FX_MAX_ALLOCS];
	unsigned int allocs;
	int allocs_left; /* mem_alloc fails after so many; < 0: never */

	struct rnic_lock *held[8];
	int held_rank[8];
	unsigned int helds;
	unsigned int locks; /* taken so far */
	/* Called before each lock is taken, with its rank. */
	void (*lock_hook)(struct fx *fx, const struct rnic_lock *lock,
			  int rank);

	char *far;
	uint64_t bad_va, bad_len; /* of the far space: faults */
	unsigned int copies;
	unsigned int copies_left; /* 0: no limit; counts down to a fault */
};

enum {
	FX_RANK_REQ = 1,
	FX_RANK_BIND,
	FX_RANK_RESP,
	FX_RANK_SRQ,
	FX_RANK_CQ,
	FX_RANK_ATOMIC
};

void fx_open(struct fx *fx, uint32_t link_layer);
void fx_second_view(struct fx *fx);
/* Destroys all contexts below 16 and fails on anything that is left. */
void fx_close(struct fx *fx);

/* The next @n attempts to take @lock find it busy. */
void fx_lock_busy(struct rnic_lock *lock, unsigned int n);
/* The next who takes @lock hears that its holder has died. */
void fx_lock_dead(struct rnic_lock *lock);

/* Whoever is running dies: so it goes for each lock that is held now. */
void fx_die(struct fx *fx);

/* Time goes on by @ns, timers run. */
void fx_advance(struct fx *fx, uint64_t ns);
/* Time goes on to the next timer; false: there is none. */
bool fx_next_timer(struct fx *fx);
/* Timer after timer, until there is none or they seem to go on for ever. */
void fx_settle(struct fx *fx);

/* ---- memory --------------------------------------------------------- */

struct fx_mr {
	uint32_t key;
	uint64_t addr; /* as work requests name it */
	uint8_t *ptr;  /* as the test sees it */
	uint64_t len;
};

#define FX_ALL_ACCESS                                              \
	(RNIC_LOCAL_WRITE | RNIC_REMOTE_WRITE | RNIC_REMOTE_READ | \
	 RNIC_REMOTE_ATOMIC)

struct fx_end;
/* Zeroed arena memory, registered at an address that is nobody's pointer. */
struct fx_mr fx_mr(struct fx_end *e, uint64_t len, uint32_t access);
/* @len bytes of the far space from @off. */
struct fx_mr fx_mr_far(struct fx_end *e, uint64_t off, uint64_t len,
		       uint32_t access);
/* An address handle of @e that leads to @peer. */
uint32_t fx_ah(struct fx_end *e, const struct fx_end *peer, bool global);
void fx_fill(void *p, size_t len, uint32_t seed);
uint64_t fx_pages(struct fx *fx, uint64_t len);

/* ---- queues --------------------------------------------------------- */

struct fx_cq {
	struct rnic *r;
	uint32_t cqn;
	uint32_t log_depth;
	uint64_t consumer;
	struct rnic_cq_mem mem;
};

struct fx_end {
	struct fx *fx;
	struct rnic *r;
	uint32_t ctx, pdn, qpn;
	struct fx_cq scq, rcq;
	struct rnic_qp_init init;
	struct rnic_qp_mem mem;
	uint64_t sq_next, rq_next;
};

struct fx_opts {
	uint32_t mtu;
	uint32_t sq_log_depth, sq_log_stride;
	uint32_t rq_log_depth, rq_log_stride;
	uint32_t cq_log_depth;
	uint32_t sig_all, inline_recv, timestamps;
	uint32_t psn; /* of a's requests; b's: +0x1000 */
	uint32_t access;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t rd_atomic;
	uint32_t srqn;
	uint32_t type; /* 0: RC */
};

#define FX_QKEY 0x11223344u

extern const struct fx_opts fx_defaults;

void fx_cq_new(struct fx_cq *cq, struct rnic *r, uint32_t ctx, uint32_t dev,
	       uint32_t log_depth, uint32_t timestamps);
struct fx_srq {
	struct fx *fx;
	struct rnic *r;
	uint32_t ctx, srqn;
	struct rnic_srq_attr attr;
	struct rnic_srq_mem mem;
	uint64_t next;
};

#define SRQ_HANDLE(srq) (0xd0000000ull + (srq)->ctx)

void fx_srq_new(struct fx_srq *srq, struct fx *fx, uint32_t ctx, uint32_t dev,
		uint32_t pdn, uint32_t log_depth);
/* One of XRC domain @xrcd, whose receives complete in @cq. */
void fx_xsrq_new(struct fx_srq *srq, struct fx *fx, uint32_t ctx, uint32_t dev,
		 uint32_t pdn, uint32_t log_depth, uint32_t xrcd,
		 const struct fx_cq *cq);
struct rnic_srq *fx_srq_state(const struct fx_srq *srq);
/* Posts one receive of @len bytes at @off of @mr and rings. */
void fx_srq_recv(struct fx_srq *srq, uint32_t cookie, const struct fx_mr *mr,
		 uint64_t off, uint32_t len);

/* PD, CQs and a QP in RESET. */
void fx_end_new(struct fx_end *e, struct fx *fx, struct rnic *r, uint32_t ctx,
		uint32_t dev, const struct fx_opts *o);
/* An XRC target in RESET; fx_send() and fx_recv() are not for it. */
void fx_target_new(struct fx_end *e, struct fx *fx, struct rnic *r,
		   uint32_t ctx, uint32_t dev, uint32_t xrcd);
/* The attributes and mask that lead to @state on the way to @peer. */
uint32_t fx_attr(const struct fx_end *e, const struct fx_end *peer,
		 uint32_t state, const struct fx_opts *o, uint32_t psn,
		 uint32_t peer_psn, struct rnic_qp_attr *attr);
/* RESET to @state. */
void fx_connect(struct fx_end *e, const struct fx_end *peer, uint32_t state,
		const struct fx_opts *o, uint32_t psn, uint32_t peer_psn);
int fx_modify(struct fx_end *e, uint32_t state);
/* Two ends, on devices 0 and 1, connected, both RTS. */
void fx_pair(struct fx *fx, struct fx_end *a, struct fx_end *b,
	     const struct fx_opts *o);
/* After RESET: posting goes on where the device says. */
void fx_resync(struct fx_end *e);

struct rnic_qp *fx_qp(const struct fx_end *e);
struct rnic_cq *fx_cq_state(const struct fx_cq *cq);
struct sf_send_line *fx_line(const struct fx_end *e);
uint32_t fx_state(const struct fx_end *e);

/* ---- posting and polling -------------------------------------------- */

struct fx_wr {
	uint32_t opcode, flags;
	uint64_t remote_addr;
	uint32_t rkey, imm, srqn;
	uint64_t arg0, arg1;
	uint32_t counter_id;
	const void *data; /* inline */
	uint32_t len;
	uint32_t n_sge;
	struct sf_sge sge[SF_MAX_SEND_SGE + 2];
	struct sf_bind bind; /* BIND_MW */
};

struct sf_wqe *fx_slot(const struct fx_end *e, uint64_t index);
/* Writes and commits; returns the index. */
uint64_t fx_post(struct fx_end *e, const struct fx_wr *wr);
/* Posts and rings. */
uint64_t fx_send(struct fx_end *e, const struct fx_wr *wr);
void fx_recv(struct fx_end *e, uint32_t cookie, const struct sf_sge *sge,
	     uint32_t n);
/* One receive of @len bytes at @off of @mr. */
void fx_recv_mr(struct fx_end *e, uint32_t cookie, const struct fx_mr *mr,
		uint64_t off, uint32_t len);

static inline struct sf_sge fx_sge(const struct fx_mr *mr, uint64_t off,
				   uint32_t len)
{
	return (struct sf_sge){mr->addr + off, len, mr->key};
}

bool fx_poll(struct fx_cq *cq, struct sf_cqe *cqe);

struct sf_cqe fx_take_cqe(struct fx_cq *cq, uint32_t opcode, uint32_t status,
			  uint32_t syndrome, uint64_t wr, const char *file,
			  int line);
/* The next CQE, which must be as given. */
#define expect_cqe(cq, opcode, status, syndrome, wr) \
	fx_take_cqe(cq, opcode, status, syndrome, wr, __FILE__, __LINE__)
#define expect_ok(cq, opcode, wr) \
	expect_cqe(cq, opcode, SF_ST_SUCCESS, SF_SYN_NONE, wr)

void fx_no_cqe(struct fx_cq *cq, const char *file, int line);
#define expect_no_cqe(cq) fx_no_cqe(cq, __FILE__, __LINE__)

/* The next event that nobody has looked at, which must be as given. */
void fx_take_event(struct fx *fx, uint32_t type, uint32_t ctx, uint64_t element,
		   const char *file, int line);
#define expect_event(fx, type, ctx, element) \
	fx_take_event(fx, type, ctx, element, __FILE__, __LINE__)
#define expect_no_event(fx) \
	assert_int_equal((fx)->events - (fx)->events_seen, 0)

#define expect_line(e, index)                                         \
	do {                                                          \
		assert_int_equal(fx_line(e)->word, index);            \
		assert_true(fx_line(e)->failed == SF_LINE_NO_FAILED); \
	} while (0)

#define expect_failed_line(e, index, st, syn)                                \
	do {                                                                 \
		assert_int_equal(fx_line(e)->word, (index) | SF_LINE_ERROR); \
		assert_int_equal(fx_line(e)->failed, index);                 \
		assert_int_equal(fx_line(e)->status, st);                    \
		assert_int_equal(fx_line(e)->syndrome, syn);                 \
	} while (0)

#define END_HANDLE(e) (0xabc00000ull + (e)->ctx)

#endif
