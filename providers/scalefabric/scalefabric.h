/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SF_SCALEFABRIC_H
#define SF_SCALEFABRIC_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/container_of.h>
#include <infiniband/driver.h>
#include <scalefabric/sf_hw.h>
#include <util/compiler.h>

#include "abi.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the rings are little-endian; nothing here swaps bytes"
#endif

/* A mapping of cmd_fd, shared by every region that names its key. */
struct sf_map {
	struct sf_map *next;
	uint64_t key;
	size_t length;
	void *addr;
	unsigned int refs;
};

/* A piece of a mapping in use; map is NULL while there is none. */
struct sf_view {
	struct sf_map *map;
	void *addr;
};

struct sf_device {
	struct verbs_device vdev;
};

struct sf_context {
	struct verbs_context vctx;

	/* Changes of the CQs' QP tables; taken before the locks of CQs. */
	pthread_mutex_t table_lock;

	/* Innermost. */
	pthread_mutex_t map_lock;
	struct sf_map *maps;

	uint32_t max_send_sge;
	uint32_t max_inline;
	uint8_t max_log_depth;
	uint8_t max_cq_log_depth;
	bool clock_is_monotonic; /* of timestamps: the host's own */

	/* Is the doorbell followed by a uverbs command? */
	bool sq_notify;
	bool rq_notify;
	bool srq_notify;
	bool cq_notify;
};

struct sf_td {
	struct ibv_td ibv_td;
	unsigned int users; /* parent domains */
};

struct sf_pd {
	struct ibv_pd ibv_pd;
	uint32_t pdn;
	/* Of a PD its parent domains, of a parent domain what lives in it. */
	unsigned int users;

	/* Parent domains only. */
	struct sf_pd *protection;
	struct sf_td *td; /* NULL: none */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *pd_context;
};

/* Memory of our own; pd is whose allocator it came from, if any. */
struct sf_mem {
	void *addr;
	struct sf_pd *pd;
};

struct sf_ah {
	struct ibv_ah ibv_ah;
	uint32_t number; /* as work requests name it */
};

/* A spinlock, or nothing where the caller declared a single thread. */
struct sf_lock {
	pthread_spinlock_t spin;
	bool needed;
};

struct sf_qp;
struct sf_srq;

/* The place of a QP, or of an XRC SRQ, in a table of a CQ. */
struct sf_cq_link {
	struct sf_cq_link *next;
	union {
		struct sf_qp *qp;
		struct sf_srq *srq;
	};
	uint32_t number;
};

/*
 * What completes into a CQ, by number: one table of QPs, and one of XRC SRQs.
 * A CQE finds its QP here, under the CQ's own lock: a QP that left the table is
 * not touched by a poller, and a CQE that it left behind finds nothing.
 */
struct sf_cq_table {
	struct sf_cq_link **buckets;
	uint32_t mask;
};

struct sf_cq {
	struct verbs_cq vcq;
	struct sf_lock lock;

	struct sf_cqe *ring;
	uint8_t log_depth;
	uint64_t consumer; /* index of the next CQE */
	struct sf_cq_ctrl *ctrl;
	uint64_t *doorbell;
	bool notify;
	struct ibv_pd *domain; /* parent domain or NULL */

	/* The CQE that the extended poll stands at. */
	const struct sf_cqe *cur;
	uint64_t cur_word;

	struct sf_cq_table qps;
	struct sf_cq_table srqs;
	struct sf_view ring_view;
	struct sf_view ctrl_view;
	struct sf_view doorbell_view;
};

/*
 * The uverbs command that follows a doorbell store: POST_SEND, POST_RECV or
 * POST_SRQ_RECV with no work request.  Built once; bad_wr is where the kernel
 * may answer.
 */
struct sf_notify {
	struct ib_uverbs_cmd_hdr hdr;
	uint64_t response;
	uint32_t handle;
	uint32_t wr_count;
	uint32_t sge_count;
	uint32_t wqe_size;
	uint32_t bad_wr;
};

struct sf_send_shadow {
	uint64_t wr_id;
	uint64_t commit; /* until it is published */
};

/*
 * Send queue.  Indices run from the device's start index and never repeat:
 * tail <= index < head are outstanding.  head is moved by the poster before the
 * commit words are stored, tail by the poller, so neither needs the other's
 * lock.
 */
struct sf_sq {
	struct sf_lock lock;
	uint8_t *ring;
	uint8_t log_depth;
	uint8_t log_stride;
	uint64_t head;
	uint64_t tail;
	struct sf_send_shadow *shadow;
	struct sf_mem shadow_mem;
	uint64_t *doorbell;
	struct sf_send_line *line;
	struct sf_notify notify;
};

/* Receive queue; the value of the doorbell cell is the producer index. */
struct sf_rq {
	struct sf_lock lock;
	uint8_t *ring;
	uint8_t log_depth;
	uint8_t log_stride;
	uint64_t head;
	uint64_t tail;
	uint64_t *wr_ids;
	struct sf_mem wr_ids_mem;
	uint64_t *doorbell;
	struct sf_notify notify;
};

/*
 * Shared receive queue.  Receives complete in any order: a request goes by a
 * cookie from a list of free ones, which comes back with its CQE.  No more of
 * them are out than there are slots, so each has one.
 */
struct sf_srq {
	struct verbs_srq vsrq;
	struct sf_lock lock;
	uint8_t *ring;
	uint8_t log_depth;
	uint8_t log_stride;
	bool needs_notify;
	struct ibv_pd *domain;
	uint32_t max_sge;
	uint64_t head;
	uint32_t depth; /* slots; 0: lost in a resize */
	uint32_t used;	/* cookies that are out, */
	uint32_t cookies; /* of so many: a smaller ring has fewer slots */
	uint32_t free; /* first free one, or SF_SRQ_NONE */
	uint32_t *next_free;
	struct sf_mem next_free_mem;
	uint64_t *wr_ids;
	struct sf_mem wr_ids_mem;
	uint64_t *doorbell;
	struct sf_notify notify;
	struct sf_cq_link link; /* XRC: in vsrq.cq */
	struct sf_view ring_view;
	struct sf_view doorbell_view;
};

#define SF_SRQ_NONE UINT32_MAX

/*
 * An open ibv_wr_start() session, under the send queue's lock.  Slots from
 * sq.head up to end are filled and not committed.
 */
struct sf_session {
	uint64_t end;
	struct sf_wqe *wqe; /* of the request being built */
	uint64_t *commit;   /* its commit word, in the shadow */
	uint8_t parts;	    /* enum sf_wr_parts of its opcode */
	int err;	    /* the first error; nothing will be posted */
};

struct sf_qp {
	struct verbs_qp vqp;
	struct sf_session session;
	struct sf_sq sq;
	struct sf_rq rq;
	struct sf_srq *srq; /* NULL: rq is used */
	struct ibv_qp_cap cap;
	uint8_t no_parts; /* enum sf_wr_parts that its transport lacks */
	uint32_t no_flags; /* enum ibv_send_flags likewise */
	bool hashes; /* only chooses among work queues: see wq.c */
	bool sq_sig_all;
	bool sq_notify;
	bool rq_notify;
	struct sf_cq_link send_link;
	struct sf_cq_link recv_link; /* unused if both CQs are one */
	struct sf_view sq_view;
	struct sf_view line_view;
	struct sf_view rq_view;
	struct sf_view sq_doorbell_view;
	struct sf_view rq_doorbell_view;
};

static inline struct sf_context *to_sf_context(struct ibv_context *context)
{
	return container_of(context, struct sf_context, vctx.context);
}

static inline struct sf_pd *to_sf_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct sf_pd, ibv_pd);
}

static inline struct sf_cq *to_sf_cq(struct ibv_cq *cq)
{
	return container_of(cq, struct sf_cq, vcq.cq);
}

static inline struct sf_cq *to_sf_cq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct sf_cq, vcq.cq_ex);
}

static inline struct sf_qp *to_sf_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct sf_qp, vqp.qp);
}

static inline struct sf_ah *to_sf_ah(struct ibv_ah *ah)
{
	return container_of(ah, struct sf_ah, ibv_ah);
}

/* It sends nothing, and what it receives is the business of SRQs. */
static inline bool sf_is_target(const struct sf_qp *qp)
{
	return qp->vqp.qp.qp_type == IBV_QPT_XRC_RECV;
}

static inline struct sf_srq *to_sf_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct sf_srq, vsrq.srq);
}

static inline int sf_lock_init(struct sf_lock *lock, bool needed)
{
	lock->needed = needed;
	return pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
}

static inline void sf_lock_destroy(struct sf_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

/* scalefabric.c: its holder may have lost its CPU; ours is better spent. */
void sf_lock_wait(struct sf_lock *lock);

static inline void sf_lock(struct sf_lock *lock)
{
	if (lock->needed && unlikely(pthread_spin_trylock(&lock->spin)))
		sf_lock_wait(lock);
}

static inline void sf_unlock(struct sf_lock *lock)
{
	if (lock->needed)
		pthread_spin_unlock(&lock->spin);
}

/* Smallest n with 1 << n >= value, for 1 <= value <= 1 << 31. */
static inline uint8_t sf_log2_up(uint32_t value)
{
	return value <= 1 ? 0 : 32 - __builtin_clz(value - 1);
}

static inline bool sf_outstanding(uint64_t index, uint64_t tail, uint64_t head)
{
	return index - tail < head - tail;
}

/* Caller holds the CQ's lock. */
static inline struct sf_cq_link *sf_cq_find(const struct sf_cq_table *table,
					    uint32_t number)
{
	struct sf_cq_link *link;

	link = __atomic_load_n(&table->buckets[number & table->mask],
			       __ATOMIC_ACQUIRE);
	while (link && link->number != number)
		link = link->next;
	return link;
}

/* layout.c */
bool sf_layout_matches(void);

/* mem.c */
int sf_map_region(struct sf_context *ctx,
		  const struct scalefabric_region *region, size_t size,
		  struct sf_view *view);
void sf_unmap_region(struct sf_context *ctx, struct sf_view *view);

/* pd.c */
struct ibv_pd *sf_alloc_pd(struct ibv_context *context);
int sf_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *sf_alloc_td(struct ibv_context *context,
			   struct ibv_td_init_attr *attr);
int sf_dealloc_td(struct ibv_td *td);
struct ibv_pd *sf_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr);
void sf_domain_join(struct ibv_pd *pd);
void sf_domain_leave(struct ibv_pd *pd);
bool sf_domain_single_threaded(struct ibv_pd *pd);
int sf_mem_alloc(struct sf_mem *mem, struct ibv_pd *pd, size_t n, size_t size);
void sf_mem_free(struct sf_mem *mem);

static inline void sf_ref_get(unsigned int *users)
{
	__atomic_add_fetch(users, 1, __ATOMIC_RELAXED);
}

static inline void sf_ref_put(unsigned int *users)
{
	__atomic_sub_fetch(users, 1, __ATOMIC_RELEASE);
}

static inline bool sf_ref_held(const unsigned int *users)
{
	return __atomic_load_n(users, __ATOMIC_ACQUIRE);
}

struct ibv_pd *sf_import_pd(struct ibv_context *context, uint32_t handle);
void sf_unimport_pd(struct ibv_pd *pd);

/* ah.c */
struct ibv_ah *sf_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int sf_destroy_ah(struct ibv_ah *ah);

/* mr.c */
struct ibv_mr *sf_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			 uint64_t hca_va, int access);
struct ibv_mr *sf_alloc_null_mr(struct ibv_pd *pd);
int sf_rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		size_t length, int access);
struct ibv_mr *sf_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				size_t length, uint64_t iova, int fd,
				int access);
struct ibv_mr *sf_import_mr(struct ibv_pd *pd, uint32_t handle);
void sf_unimport_mr(struct ibv_mr *mr);
int sf_dereg_mr(struct verbs_mr *mr);

/* mw.c */
struct ibv_mw *sf_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int sf_dealloc_mw(struct ibv_mw *mw);
int sf_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* dm.c */
int sf_query_context(struct ibv_context *context,
		     struct scalefabric_alloc_ucontext_resp *resp);
int sf_query_pd(struct ibv_context *context, uint32_t handle,
		struct scalefabric_alloc_pd_resp *resp);
struct ibv_dm *sf_alloc_dm(struct ibv_context *context,
			   struct ibv_alloc_dm_attr *attr);
struct ibv_dm *sf_import_dm(struct ibv_context *context, uint32_t handle);
void sf_unimport_dm(struct ibv_dm *dm);
int sf_free_dm(struct ibv_dm *dm);
struct ibv_mr *sf_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			    uint64_t offset, size_t length,
			    unsigned int access);

/* cq.c */
struct ibv_cq *sf_create_cq(struct ibv_context *context, int cqe,
			    struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *sf_create_cq_ex(struct ibv_context *context,
				  struct ibv_cq_init_attr_ex *attr);
int sf_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int sf_resize_cq(struct ibv_cq *cq, int cqe);
int sf_destroy_cq(struct ibv_cq *cq);

/* poll.c */
int sf_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int sf_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void sf_cq_set_extended_poll(struct sf_cq *cq, uint64_t wc_flags);
void sf_cq_return_srq_receives(struct sf_cq *cq, struct sf_qp *qp);

/* srq.c */
struct ibv_srq *sf_create_srq(struct ibv_pd *pd,
			      struct ibv_srq_init_attr *attr);
struct ibv_srq *sf_create_srq_ex(struct ibv_context *context,
				 struct ibv_srq_init_attr_ex *attr);
int sf_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		  int attr_mask);
int sf_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int sf_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int sf_destroy_srq(struct ibv_srq *srq);
int sf_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr);
/* The receive is done: @cookie is free again.  False: there is none such. */
bool sf_srq_retire(struct sf_srq *srq, uint32_t cookie, uint64_t *wr_id);

/* cq_table.c */
int sf_cq_table_init(struct sf_cq_table *table, uint32_t max);
void sf_cq_table_destroy(struct sf_cq_table *table);
void sf_srq_attach(struct sf_srq *srq);
void sf_srq_detach(struct sf_srq *srq);
void sf_qp_attach(struct sf_qp *qp);
void sf_qp_detach(struct sf_qp *qp);
void sf_lock_cqs(struct ibv_qp *qp);
void sf_unlock_cqs(struct ibv_qp *qp);

/* qp.c */
struct ibv_qp *sf_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *sf_create_qp_ex(struct ibv_context *context,
			       struct ibv_qp_init_attr_ex *attr);
int sf_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		struct ibv_qp_init_attr *init_attr);
int sf_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int sf_destroy_qp(struct ibv_qp *qp);

void sf_init_notify(struct sf_notify *notify, uint32_t handle, uint32_t command,
		    uint32_t wqe_size);
void sf_shape_rq(struct sf_rq *rq, struct ibv_qp_cap *cap);
size_t sf_rq_size(const struct sf_rq *rq);
int sf_init_rq(struct sf_rq *rq, struct ibv_pd *pd);
void sf_fini_rq(struct sf_rq *rq);
void sf_start_rq(struct sf_qp *qp, uint32_t handle, uint64_t start);
void sf_unmap_qp(struct sf_context *ctx, struct sf_qp *qp);
uint8_t sf_recv_log_stride(uint32_t max_sge);
uint32_t sf_recv_max_sge(uint8_t log_stride);

/* wq.c */
struct ibv_wq *sf_create_wq(struct ibv_context *context,
			    struct ibv_wq_init_attr *attr);
int sf_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int sf_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *
sf_create_rwq_ind_table(struct ibv_context *context,
			struct ibv_rwq_ind_table_init_attr *attr);
int sf_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);
struct ibv_qp *sf_create_hash_qp(struct sf_context *ctx,
				 const struct ibv_qp_init_attr_ex *attr);

/* flow.c */
struct ibv_flow *sf_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int sf_destroy_flow(struct ibv_flow *flow);
struct ibv_counters *sf_create_counters(struct ibv_context *context,
					struct ibv_counters_init_attr *attr);
int sf_destroy_counters(struct ibv_counters *counters);
int sf_attach_counters_point_flow(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr,
				  struct ibv_flow *flow);
int sf_read_counters(struct ibv_counters *counters, uint64_t *values,
		     uint32_t n, uint32_t flags);

/* xrc.c */
struct ibv_xrcd *sf_open_xrcd(struct ibv_context *context,
			      struct ibv_xrcd_init_attr *attr);
int sf_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *sf_open_qp(struct ibv_context *context,
			  struct ibv_qp_open_attr *attr);

/* wr_ex.c */
bool sf_send_ops_supported(enum ibv_qp_type type, uint64_t send_ops_flags);
void sf_set_send_ops(struct sf_qp *qp, uint64_t send_ops_flags);

/* wr.c */
int sf_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad_wr);
int sf_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad_wr);

#endif
