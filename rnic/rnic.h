/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The software RNIC: a device model without I/O.
 *
 * All state lies in one memory area (the arena) that several processes may map
 * at different addresses; objects name each other by number, never by pointer.
 * `struct rnic` is one process's view: where the arena is mapped and the
 * functions through which the model reaches the world.
 *
 * Two kinds of calls:
 *  - control (rnic_*_create, _modify, _destroy, ...): one caller at a time, the
 *    owner of the arena;
 *  - data path (rnic_sq_ring, rnic_rq_ring, rnic_cq_arm, rnic_tick,
 *    rnic_receive): any thread of any process, at any time.
 *
 * Return values: 0 or a positive errno.
 */
#ifndef RNIC_H
#define RNIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits that query_device reports and that are kept. */
#define RNIC_MAX_DEVICES 8
#define RNIC_MAX_PORTS 2
#define RNIC_MAX_GIDS 16
#define RNIC_MAX_QP 16384
#define RNIC_MAX_CQ 16384
#define RNIC_MAX_MR 65536
#define RNIC_MAX_MW 16384
#define RNIC_MAX_KEYS (RNIC_MAX_MR + RNIC_MAX_MW)
#define RNIC_MAX_DM 1024
#define RNIC_MAX_DM_SIZE (1u << 20)
#define RNIC_MAX_PD 4096
#define RNIC_MAX_SRQ 4096
#define RNIC_MAX_AH 32768
#define RNIC_MAX_MCAST 4096 /* attachments of QPs to groups */
#define RNIC_MAX_COUNTERS 1024
#define RNIC_MAX_FLOW 8192 /* steering rules */
#define RNIC_MAX_FLOW_COUNTERS 1024
#define RNIC_MAX_WQ_TABLE 1024 /* indirection tables ... */
#define RNIC_MAX_LOG_WQ_TABLE 7 /* ... and log2 of their entries */
#define RNIC_MIN_FRAME 14 /* raw packets: Ethernet header ... */
#define RNIC_MAX_FRAME 9018 /* ... to jumbo frame with a VLAN tag, no FCS */
#define RNIC_MAX_XRCD 1024  /* opened XRC domains */
#define RNIC_MAX_QP_REF 8192 /* opens of XRC target QPs */
#define RNIC_MAX_RD_ATOMIC 16
#define RNIC_NAME_MAX 32

/* Offset of the first byte that rnic_create() leaves to the host. */
#define RNIC_ARENA_DYNAMIC (64ULL << 20)
#define RNIC_PAGE 4096u

enum rnic_link_layer { RNIC_INFINIBAND = 1, RNIC_ETHERNET = 2 };

/* Values of enum ibv_mtu. */
enum rnic_mtu {
	RNIC_MTU_256 = 1,
	RNIC_MTU_512,
	RNIC_MTU_1024,
	RNIC_MTU_2048,
	RNIC_MTU_4096
};

/* Values of enum ibv_access_flags. */
enum rnic_access {
	RNIC_LOCAL_WRITE = 1 << 0,
	RNIC_REMOTE_WRITE = 1 << 1,
	RNIC_REMOTE_READ = 1 << 2,
	RNIC_REMOTE_ATOMIC = 1 << 3,
	RNIC_MW_BIND = 1 << 4,
	RNIC_ZERO_BASED = 1 << 5,
	RNIC_ON_DEMAND = 1 << 6,
};

/* Values of enum ibv_qp_state. */
enum rnic_qp_state {
	RNIC_RESET,
	RNIC_INIT,
	RNIC_RTR,
	RNIC_RTS,
	RNIC_SQD,
	RNIC_SQE,
	RNIC_ERR
};

/* Values of enum ibv_qp_type, and two that verbs programs do not see. */
enum rnic_qp_type {
	RNIC_QPT_RC = 2,
	RNIC_QPT_UC = 3,
	RNIC_QPT_UD = 4,
	RNIC_QPT_RAW_PACKET = 8,
	RNIC_QPT_XRC_SEND = 9,
	RNIC_QPT_XRC_RECV = 10,
	RNIC_QPT_WQ = 16, /* a work queue: receives what a table sends it */
	RNIC_QPT_HASH = 17, /* spreads frames over the work queues of a table */
};

/* Values of enum ibv_qp_attr_mask. */
enum rnic_qp_mask {
	RNIC_QP_STATE = 1 << 0,
	RNIC_QP_CUR_STATE = 1 << 1,
	RNIC_QP_EN_SQD_NOTIFY = 1 << 2,
	RNIC_QP_ACCESS = 1 << 3,
	RNIC_QP_PKEY_INDEX = 1 << 4,
	RNIC_QP_PORT = 1 << 5,
	RNIC_QP_QKEY = 1 << 6,
	RNIC_QP_AV = 1 << 7,
	RNIC_QP_PATH_MTU = 1 << 8,
	RNIC_QP_TIMEOUT = 1 << 9,
	RNIC_QP_RETRY_CNT = 1 << 10,
	RNIC_QP_RNR_RETRY = 1 << 11,
	RNIC_QP_RQ_PSN = 1 << 12,
	RNIC_QP_MAX_RD_ATOMIC = 1 << 13,
	RNIC_QP_ALT_PATH = 1 << 14,
	RNIC_QP_MIN_RNR_TIMER = 1 << 15,
	RNIC_QP_SQ_PSN = 1 << 16,
	RNIC_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	RNIC_QP_PATH_MIG_STATE = 1 << 18,
	RNIC_QP_CAP = 1 << 19,
	RNIC_QP_DEST_QPN = 1 << 20,
	RNIC_QP_RATE_LIMIT = 1 << 25,
};

/* Values of enum ibv_event_type, plus the completion event. */
enum rnic_event_type {
	RNIC_EVENT_CQ_ERR = 0,
	RNIC_EVENT_QP_FATAL = 1,
	RNIC_EVENT_QP_REQ_ERR = 2,
	RNIC_EVENT_QP_ACCESS_ERR = 3,
	RNIC_EVENT_COMM_EST = 4,
	RNIC_EVENT_SQ_DRAINED = 5,
	RNIC_EVENT_DEVICE_FATAL = 8,
	RNIC_EVENT_PORT_ACTIVE = 9,
	RNIC_EVENT_PORT_ERR = 10,
	RNIC_EVENT_SRQ_ERR = 14,
	RNIC_EVENT_SRQ_LIMIT_REACHED = 15,
	RNIC_EVENT_QP_LAST_WQE_REACHED = 16,
	RNIC_EVENT_WQ_FATAL = 19,
	RNIC_EVENT_COMPLETION = 255,
};

struct rnic_av {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t is_global;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t port_num;
	uint8_t reserved[2];
};

struct rnic_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

/* The attributes of modify_qp and query_qp (IBTA vol. 1, 11.2.4). */
struct rnic_qp_attr {
	uint32_t state;
	uint32_t cur_state;
	uint32_t path_mtu;
	uint32_t path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qpn;
	uint32_t access;
	uint32_t rate_limit;
	struct rnic_qp_cap cap;
	struct rnic_av av;
	struct rnic_av alt_av;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint8_t reserved;
};

struct rnic_event {
	uint32_t type; /* enum rnic_event_type */
	uint32_t ctx; /* context that gets it */
	uint32_t channel; /* completion channel number */
	uint32_t number; /* of the QP, CQ or SRQ that it is about */
	uint64_t element; /* user handle, or port number */
};

/* A lock in shared memory, laid out by the host (room for a pthread mutex). */
struct rnic_lock {
	uint64_t opaque[5];
};

enum rnic_lock_result {
	RNIC_LOCKED = 0,
	RNIC_LOCK_BUSY, /* somebody holds it, longer than anyone should */
	RNIC_LOCK_REPAIR, /* locked, but the last holder died inside */
};

/* Where bytes are. */
#define RNIC_SPACE_RAW 0u /* va is a pointer of this process */
#define RNIC_SPACE_ARENA (~0u) /* va is an offset in the arena */
#define RNIC_SPACE_NULL (~1u)  /* reads as zeros, takes everything */
struct rnic_ref {
	uint64_t va;
	uint64_t len;
	uint32_t space; /* one of these or number of an address space */
	/*
	 * Nobody has looked at this memory when it was registered: it may be
	 * unmapped, or not for writing, and then this is a fault.
	 */
	uint32_t on_demand;
};

enum rnic_copy_result {
	RNIC_COPY_OK = 0,
	RNIC_FAULT_DST,
	RNIC_FAULT_SRC,
	RNIC_COPY_BUSY, /* atomics only: not now, nothing has happened */
};

/* What the model needs from the process that it runs in. */
struct rnic_host_ops {
	/* Nanoseconds, monotonic, the same in every process. */
	uint64_t (*now)(void *host);

	void (*lock_init)(void *host, struct rnic_lock *lock);
	enum rnic_lock_result (*trylock)(void *host, struct rnic_lock *lock);
	/* Waits for a bounded time. */
	enum rnic_lock_result (*lock)(void *host, struct rnic_lock *lock);
	void (*unlock)(void *host, struct rnic_lock *lock);

	/*
	 * Copies min(dst->len, src->len) bytes where at least one side is in
	 * an address space that only the host can reach.  Says whose side
	 * failed; then any prefix may have been copied.
	 */
	enum rnic_copy_result (*copy)(void *host, const struct rnic_ref *dst,
				      const struct rnic_ref *src);

	/*
	 * Counted and told in one step, under a lock: whoever is killed in
	 * there leaves a count that nobody can mend.  Never blocks.
	 */
	void (*event)(void *host, const struct rnic_event *event);
	/* Before that: what takes time, such as finding the way.  Or NULL. */
	void (*event_soon)(void *host, const struct rnic_event *event);

	/* rnic_tick() wants to be called at @deadline. */
	void (*timer)(void *host, uint64_t deadline);

	/* Lets others run; NULL where nobody is to be waited for. */
	void (*yield)(void *host);

	/*
	 * Makes the arena accessible up to @end; returns up to where it is
	 * now.  NULL: all of it always is.
	 */
	uint64_t (*reach)(void *host, uint64_t end);

	/* Control only: zeroed pages of the arena.  0 if there are none. */
	uint64_t (*mem_alloc)(void *host, uint64_t len);
	void (*mem_free)(void *host, uint64_t off, uint64_t len);
};

struct rnic_shared;
struct rnic_link_ops;

#define RNIC_LINK_DIRECT 0
#define RNIC_LINK_WIRE 1
#define RNIC_LINKS 2

struct rnic {
	struct rnic_shared *sh; /* start of the arena in this process */
	uint64_t size; /* of the arena */
	uint64_t mapped; /* accessible here, grows by ops->reach */
	const struct rnic_host_ops *ops;
	void *host;
	const struct rnic_link_ops *links[RNIC_LINKS];
	/*
	 * Set by who serves everybody: a call never does more than a burst of
	 * other people's transfers, rnic_tick() does the rest.
	 */
	bool bounded;
};

struct rnic_config {
	uint32_t devices;
	uint32_t ports;
	uint32_t link_layer; /* enum rnic_link_layer */
	uint32_t mtu; /* enum rnic_mtu: active MTU */
	uint64_t guid; /* of device 0; device i has guid + i * 16 */
	char name[RNIC_NAME_MAX]; /* device i is called name<i> */
};

/* ---- set-up --------------------------------------------------------- */

/* Formats the (zeroed) arena at @base. */
int rnic_create(struct rnic *r, void *base, uint64_t size,
		const struct rnic_config *config,
		const struct rnic_host_ops *ops, void *host);
/* Uses an arena that another process formatted; EPROTO if of another build. */
int rnic_attach(struct rnic *r, void *base, uint64_t size,
		const struct rnic_host_ops *ops, void *host);

/* Adds a GID to a port (@port from 1); ENOSPC when the table is full. */
int rnic_port_add_gid(struct rnic *r, uint32_t dev, uint32_t port,
		      const uint8_t gid[16]);

/*
 * Takes a port down or up: EALREADY if it is.  Who has the device open is told
 * by the caller (RNIC_EVENT_PORT_ERR, _ACTIVE).
 */
int rnic_port_set(struct rnic *r, uint32_t dev, uint32_t port, bool up);

/* ---- control: objects.  @ctx is the owner, a number of the host's --- */

int rnic_pd_create(struct rnic *r, uint32_t ctx, uint32_t dev, uint32_t *pdn);
int rnic_pd_destroy(struct rnic *r, uint32_t ctx, uint32_t pdn);
int rnic_pd_query(const struct rnic *r, uint32_t ctx, uint32_t pdn);

/* Address handles: @ah is index and tag, as work requests name it. */
int rnic_ah_create(struct rnic *r, uint32_t ctx, uint32_t dev, uint32_t pdn,
		   const struct rnic_av *av, uint32_t *ah);
int rnic_ah_destroy(struct rnic *r, uint32_t ctx, uint32_t ah);

/* A part of a region that lies in the arena. */
#define RNIC_MR_SEGS 3
struct rnic_mr_seg {
	uint64_t va; /* first byte, as the owner addresses it */
	uint64_t len;
	uint64_t off; /* where it lies in the arena */
};

struct rnic_mr_attr {
	uint64_t addr;
	uint64_t len;
	uint64_t iova; /* address by which work requests name byte 0 */
	uint32_t access;
	uint32_t pdn;
	uint32_t space; /* that @addr belongs to, or RNIC_SPACE_NULL */
	uint32_t dm;	/* device memory, @addr is an offset in it; 0: none */
	uint32_t nseg;
	uint32_t reserved;
	struct rnic_mr_seg seg[RNIC_MR_SEGS]; /* ascending, disjoint */
};

/* Values of enum ibv_rereg_mr_flags. */
enum rnic_mr_mask {
	RNIC_MR_TRANSLATION = 1 << 0,
	RNIC_MR_PD = 1 << 1,
	RNIC_MR_ACCESS = 1 << 2,
};

int rnic_mr_create(struct rnic *r, uint32_t ctx,
		   const struct rnic_mr_attr *attr, uint32_t *key);
/* Returns when nobody uses the region any more; EBUSY: windows are bound. */
int rnic_mr_destroy(struct rnic *r, uint32_t ctx, uint32_t key);
/*
 * Changes what @mask says, key and all else stay.  Requests that come meanwhile
 * do not find the key; returns when nobody uses what was there before.
 */
int rnic_mr_modify(struct rnic *r, uint32_t ctx, uint32_t key, uint32_t mask,
		   const struct rnic_mr_attr *attr);
/* Without segments. */
int rnic_mr_query(const struct rnic *r, uint32_t ctx, uint32_t key,
		  struct rnic_mr_attr *attr);

/*
 * Memory windows (IBTA vol. 1, 10.6.7).  @type 1 or 2; @key is the object's
 * number as long as it lives, and its first R_Key.
 */
int rnic_mw_create(struct rnic *r, uint32_t ctx, uint32_t pdn, uint32_t type,
		   uint32_t *key);
int rnic_mw_destroy(struct rnic *r, uint32_t ctx, uint32_t key);

/* Device memory: zeroed pages of the arena; @off: where. */
int rnic_dm_create(struct rnic *r, uint32_t ctx, uint32_t dev, uint64_t len,
		   uint32_t *dm, uint64_t *off);
/* EBUSY: a region lies in it. */
int rnic_dm_destroy(struct rnic *r, uint32_t ctx, uint32_t dm);
int rnic_dm_query(const struct rnic *r, uint32_t ctx, uint32_t dm,
		  uint64_t *off, uint64_t *len);

/* A counter for work requests of that PD; @mem: arena offset of its page. */
int rnic_counter_create(struct rnic *r, uint32_t ctx, uint32_t pdn,
			uint32_t *id, uint64_t *mem);
/* Returns when nobody counts in it any more. */
int rnic_counter_destroy(struct rnic *r, uint32_t ctx, uint32_t id);

struct rnic_cq_attr {
	uint32_t dev;
	uint32_t log_depth;
	uint32_t channel; /* completion channel or 0 */
	uint32_t timestamps;
	uint64_t user_handle; /* comes back in events */
};

/* Where things lie in the arena. */
struct rnic_cq_mem {
	uint64_t ring, ring_len;
	uint64_t ctrl; /* page with struct sf_cq_ctrl at 0, doorbell at 64 */
	uint64_t start;
};

int rnic_cq_create(struct rnic *r, uint32_t ctx,
		   const struct rnic_cq_attr *attr, uint32_t *cqn,
		   struct rnic_cq_mem *mem);
int rnic_cq_resize(struct rnic *r, uint32_t ctx, uint32_t cqn,
		   uint32_t log_depth, struct rnic_cq_mem *mem);
/*
 * An event comes when @count CQEs are due, or @period us after the first of
 * them.  Either 0: at once.
 */
int rnic_cq_moderate(struct rnic *r, uint32_t ctx, uint32_t cqn, uint16_t count,
		     uint16_t period);
int rnic_cq_destroy(struct rnic *r, uint32_t ctx, uint32_t cqn,
		    uint32_t *comp_events, uint32_t *async_events);

/* What rnic_cq_attr said; 0 if there is no such CQ. */
uint64_t rnic_cq_user_handle(const struct rnic *r, uint32_t cqn);

/*
 * Opens the XRC domain of file @ino on file system @fs, which all who name the
 * same share: @create makes one that is not there (else EAGAIN), @exclusive
 * refuses one that is there (EINVAL).  Without a file: a domain of its own.
 */
struct rnic_xrcd_attr {
	uint32_t dev;
	uint8_t create, exclusive;
	uint8_t has_file; /* else fs and ino mean nothing */
	uint8_t reserved;
	uint64_t fs, ino;
};

int rnic_xrcd_open(struct rnic *r, uint32_t ctx,
		   const struct rnic_xrcd_attr *attr, uint32_t *xrcd);
/* EBUSY while SRQs or QPs are open through it. */
int rnic_xrcd_close(struct rnic *r, uint32_t ctx, uint32_t xrcd);
bool rnic_xrcd_live(const struct rnic *r, uint32_t xrcd);

struct rnic_srq_attr {
	uint32_t dev;
	uint32_t pdn; /* receive buffers are checked against this one */
	uint32_t log_depth, log_stride;
	uint32_t limit; /* of a query: see rnic_srq_set_limit() */
	uint32_t xrcd;	/* XRC: domain, and where receives complete; else 0 */
	uint32_t cqn;
	uint32_t reserved;
	uint64_t user_handle;
};

struct rnic_srq_mem {
	uint64_t ring, ring_len;
	uint64_t doorbell; /* page with the cell at 0 */
	uint64_t start;
};

int rnic_srq_create(struct rnic *r, uint32_t ctx,
		    const struct rnic_srq_attr *attr, uint32_t *srqn,
		    struct rnic_srq_mem *mem);
/* Arms the limit event, which comes at once if it is due; 0 disarms it. */
int rnic_srq_set_limit(struct rnic *r, uint32_t ctx, uint32_t srqn,
		       uint32_t limit);
/* Moves what is posted to a ring of another depth; EINVAL: it is too small. */
int rnic_srq_resize(struct rnic *r, uint32_t ctx, uint32_t srqn,
		    uint32_t log_depth, struct rnic_srq_mem *mem);
int rnic_srq_query(struct rnic *r, uint32_t ctx, uint32_t srqn,
		   struct rnic_srq_attr *attr);
int rnic_srq_destroy(struct rnic *r, uint32_t ctx, uint32_t srqn,
		     uint32_t *async_events);

/* Values of enum ibv_rx_hash_fields. */
enum rnic_hash_fields {
	RNIC_HASH_SRC_IPV4 = 1 << 0,
	RNIC_HASH_DST_IPV4 = 1 << 1,
	RNIC_HASH_SRC_IPV6 = 1 << 2,
	RNIC_HASH_DST_IPV6 = 1 << 3,
	RNIC_HASH_SRC_PORT_TCP = 1 << 4,
	RNIC_HASH_DST_PORT_TCP = 1 << 5,
	RNIC_HASH_SRC_PORT_UDP = 1 << 6,
	RNIC_HASH_DST_PORT_UDP = 1 << 7,
	RNIC_HASH_IPSEC_SPI = 1 << 8,
};
#define RNIC_HASH_INNER (1u << 31) /* of the frame in the tunnel */
#define RNIC_HASH_FIELDS (0x1ffu | RNIC_HASH_INNER)
#define RNIC_HASH_KEY 40 /* bytes: a Toeplitz key for all fields */

struct rnic_hash {
	uint32_t fields;
	uint32_t table; /* number of an indirection table */
	uint8_t key[RNIC_HASH_KEY];
};

struct rnic_qp_init {
	uint32_t dev;
	uint32_t type;
	uint32_t pdn;
	uint32_t send_cqn;
	uint32_t recv_cqn;
	uint32_t srqn; /* 0: has a receive queue of its own */
	uint32_t xrcd; /* XRC target: no PD, CQ, SRQ or queue */
	uint32_t sq_sig_all;
	uint32_t inline_recv;
	uint32_t sq_log_depth, sq_log_stride;
	uint32_t rq_log_depth, rq_log_stride; /* 0 with an SRQ */
	/* Address space of who polls: inline data goes nowhere else. */
	uint32_t space;
	struct rnic_qp_cap cap; /* as granted, for query */
	uint64_t user_handle;
	struct rnic_hash hash; /* RNIC_QPT_HASH */
};

struct rnic_qp_mem {
	uint64_t queues, queues_len; /* one mapping */
	uint64_t sq, line, rq; /* offsets in it */
	uint64_t doorbells; /* page: SQ cell at 0, RQ cell at 64 */
	uint64_t sq_start, rq_start;
	uint32_t handle; /* names it below: its number or that of an open */
	uint32_t reserved;
};

/*
 * Modify, query and destroy take a handle: the number of the QP, but for an XRC
 * target, which may be open several times.  It goes with its last handle.
 */
int rnic_qp_create(struct rnic *r, uint32_t ctx,
		   const struct rnic_qp_init *init, uint32_t *qpn,
		   struct rnic_qp_mem *mem);
/* EINVAL: no XRC target of this number in that domain. */
int rnic_qp_open(struct rnic *r, uint32_t ctx, uint32_t xrcd, uint32_t qpn,
		 uint64_t user_handle, uint32_t *handle);
int rnic_qp_modify(struct rnic *r, uint32_t ctx, uint32_t handle,
		   const struct rnic_qp_attr *attr, uint32_t mask);
int rnic_qp_query(struct rnic *r, uint32_t ctx, uint32_t handle,
		  struct rnic_qp_attr *attr, struct rnic_qp_init *init);
int rnic_qp_destroy(struct rnic *r, uint32_t ctx, uint32_t handle,
		    uint32_t *async_events);

/* Twice is once; detaching what is not attached is EINVAL. */
int rnic_mcast_attach(struct rnic *r, uint32_t ctx, uint32_t qpn,
		      const uint8_t mgid[16], uint32_t mlid);
int rnic_mcast_detach(struct rnic *r, uint32_t ctx, uint32_t qpn,
		      const uint8_t mgid[16], uint32_t mlid);

/* ---- raw packets: what a frame says, and who gets it ---------------- */

enum rnic_layer {
	RNIC_LAYER_ETH = 1 << 0,
	RNIC_LAYER_VLAN = 1 << 1,
	RNIC_LAYER_IPV4 = 1 << 2,
	RNIC_LAYER_IPV6 = 1 << 3,
	RNIC_LAYER_TCP = 1 << 4,
	RNIC_LAYER_UDP = 1 << 5,
	RNIC_LAYER_ESP = 1 << 6,
	RNIC_LAYER_MPLS = 1 << 7,
	RNIC_LAYER_VXLAN = 1 << 8,
	RNIC_LAYER_GRE = 1 << 9,
};

/* Of the frame itself and of the one in its tunnel; bytes as they travel. */
struct rnic_headers {
	uint32_t layers; /* enum rnic_layer: which of these are there */
	uint8_t dst_mac[6], src_mac[6];
	uint16_t ether_type; /* behind VLAN tags */
	uint16_t vlan_tag; /* of the first tag */
	uint8_t src_ip[16], dst_ip[16]; /* IPv4: the first 4 bytes */
	uint32_t flow_label; /* low 20 bits of the big-endian number */
	uint8_t proto, tos, ttl; /* or next header, class, hop limit */
	uint8_t ip_flags; /* enum rnic_ip_flags */
	uint16_t dst_port, src_port;
	uint32_t spi, seq;
	uint32_t mpls; /* the first label, with class, bottom and TTL */
	uint32_t vni; /* VXLAN: low 24 bits of the big-endian number */
	uint16_t gre_flags, gre_protocol;
	uint32_t gre_key;
};

/* Values of the kernel's enum ib_ipv4_flags. */
enum rnic_ip_flags { RNIC_IP_DONT_FRAG = 2, RNIC_IP_MORE_FRAG = 4 };

struct rnic_flow_key {
	struct rnic_headers outer, inner;
};

/* Values of enum ibv_flow_attr_type. */
enum rnic_flow_type {
	RNIC_FLOW_NORMAL,
	RNIC_FLOW_ALL_DEFAULT, /* what no other rule wants */
	RNIC_FLOW_MC_DEFAULT, /* the same, group addresses only */
	RNIC_FLOW_SNIFFER, /* a copy of everything */
};

enum rnic_flow_flags {
	RNIC_FLOW_DONT_TRAP = 1 << 0, /* later rules see the frame, too */
	RNIC_FLOW_DROP = 1 << 1,
};

/*
 * A steering rule: frames whose headers, under the mask, are the value go to
 * the queue pair.
 */
struct rnic_flow_attr {
	uint32_t qpn;
	uint32_t port;
	uint32_t type;
	uint32_t priority; /* 0 is asked first */
	uint32_t flags;
	uint32_t tag; /* comes with the completion */
	uint32_t counters; /* number of counters, or 0 */
	uint32_t reserved;
	struct rnic_flow_key value, mask;
};

/*
 * EINVAL: something does not exist; EOPNOTSUPP: this queue pair is not steered
 * to.  The number has a tag: a rule's is never another's soon.
 */
int rnic_flow_create(struct rnic *r, uint32_t ctx,
		     const struct rnic_flow_attr *attr, uint32_t *flow);
int rnic_flow_destroy(struct rnic *r, uint32_t ctx, uint32_t flow);

/* What a rule counts. */
struct rnic_flow_count {
	uint64_t packets, bytes;
};

int rnic_flow_counters_create(struct rnic *r, uint32_t ctx, uint32_t dev,
			      uint32_t *id);
/* EINVAL as long as no rule counts in them, as in the kernel. */
int rnic_flow_counters_read(struct rnic *r, uint32_t ctx, uint32_t id,
			    struct rnic_flow_count *count);
int rnic_flow_counters_destroy(struct rnic *r, uint32_t ctx, uint32_t id);

struct rnic_wq_table_attr {
	uint32_t log_size;
	uint32_t wqn[1 << RNIC_MAX_LOG_WQ_TABLE];
};

int rnic_wq_table_create(struct rnic *r, uint32_t ctx,
			 const struct rnic_wq_table_attr *attr,
			 uint32_t *table);
int rnic_wq_table_destroy(struct rnic *r, uint32_t ctx, uint32_t table);

/* Values of enum ibv_wq_state. */
enum rnic_wq_state { RNIC_WQ_RESET, RNIC_WQ_READY, RNIC_WQ_ERR };

/* @from: the state that the caller takes it to be in, or ~0. */
int rnic_wq_modify(struct rnic *r, uint32_t ctx, uint32_t wqn, uint32_t from,
		   uint32_t to);

/* Destroys the regions of an address space that is gone. */
void rnic_space_reap(struct rnic *r, uint32_t space);
/* All queue pairs of @ctx go to ERR and are flushed: the device is lost. */
void rnic_ctx_fail(struct rnic *r, uint32_t ctx);
/*
 * The owner of @ctx has died: what its queue pairs were connected to goes to
 * ERR, so that who waits for a message ends (on a wire it would wait for ever).
 * A request that is under way first ends by its retries, as on a wire.
 */
void rnic_ctx_orphan_peers(struct rnic *r, uint32_t ctx);
/* Destroys all that @ctx owns, in the right order; false: something stays. */
bool rnic_ctx_reap(struct rnic *r, uint32_t ctx);
/*
 * Makes every object usable again whose lock was held by a thread that died,
 * and completes what that thread had begun for others.
 */
void rnic_repair(struct rnic *r);

/* ---- data path ------------------------------------------------------ */

/* The poster has rung: execute what is committed. */
void rnic_sq_ring(struct rnic *r, uint32_t qpn);
/* Receives were posted: flush them or wake the requester that waits. */
void rnic_rq_ring(struct rnic *r, uint32_t qpn);
/* Receives were posted to a shared queue: wake those who wait for one. */
void rnic_srq_ring(struct rnic *r, uint32_t srqn);
/* The arm word was stored. */
void rnic_cq_arm(struct rnic *r, uint32_t cqn);
/*
 * Runs every timer that is due at @now; returns when to be called next, or
 * UINT64_MAX.
 */
uint64_t rnic_tick(struct rnic *r, uint64_t now);

/* ---- what the front end and the tools look at ----------------------- */

struct rnic_port_info {
	uint32_t link_layer;
	uint32_t state; /* enum ibv_port_state */
	uint32_t mtu, max_mtu;
	uint32_t lid, lmc, sm_lid, sm_sl;
	uint32_t gids;
	uint64_t guid;
	uint8_t gid[RNIC_MAX_GIDS][16];
};

struct rnic_device_info {
	char name[RNIC_NAME_MAX];
	uint64_t node_guid;
	uint64_t sys_image_guid;
	uint32_t ports;
};

uint32_t rnic_devices(const struct rnic *r);
int rnic_device_info(const struct rnic *r, uint32_t dev,
		     struct rnic_device_info *info);
int rnic_port_info(const struct rnic *r, uint32_t dev, uint32_t port,
		   struct rnic_port_info *info);

/*
 * Every counter that the device keeps, per QP and summed per port.  What is
 * repeated, after a loss or a death, counts again.
 */
#define RNIC_COUNTERS(X)                                                       \
	X(xmit_bytes)                                                          \
	X(rcv_bytes)                                                           \
	X(xmit_packets)                                                        \
	X(rcv_packets)                                                         \
	X(rx_send_requests)                                                    \
	X(rx_write_requests)                                                   \
	X(rx_read_requests)                                                    \
	X(rx_atomic_requests)                                                  \
	X(tx_requests)                                                         \
	X(duplicate_request)                                                   \
	X(out_of_sequence)                                                     \
	X(packet_seq_err)                                                      \
	X(rnr_nak_sent)                                                        \
	X(rnr_nak_retry_err)                                                   \
	X(local_ack_timeout_err)                                               \
	X(req_cqe_error)                                                       \
	X(req_cqe_flush_error)                                                 \
	X(resp_cqe_error)                                                      \
	X(resp_cqe_flush_error)                                                \
	X(req_remote_access_errors)                                            \
	X(resp_remote_access_errors)                                           \
	X(resp_local_length_error)

struct rnic_counters {
#define X(name) uint64_t name;
	RNIC_COUNTERS(X)
#undef X
};

void rnic_port_counters(const struct rnic *r, uint32_t dev, uint32_t port,
			struct rnic_counters *sum);

struct rnic_qp_info {
	uint32_t qpn, ctx, dev, type, state, dest_qpn;
	uint64_t sq_head, rq_head; /* next WQE and receive to be taken */
	uint64_t sq_posted, rq_posted; /* doorbell values */
	struct rnic_counters counters;
};

/* The first live QP with number index >= *it; false when there is none. */
bool rnic_qp_next(const struct rnic *r, uint32_t *it, struct rnic_qp_info *qp);

struct rnic_objects {
	uint32_t pds, mrs, mws, dms, cqs, srqs, qps, ahs, flows, xrcds;
};

/* Objects of @dev, or of all devices with ~0. */
void rnic_count_objects(const struct rnic *r, uint32_t dev,
			struct rnic_objects *n);

#endif
