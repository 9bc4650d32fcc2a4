/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process and the daemon say to each other: one fixed-size request, one
 * fixed-size reply, over a SOCK_SEQPACKET unix socket, with at most one file
 * descriptor each way.  Both sides are of one build (HELLO checks it) and of
 * one user.
 */
#ifndef SFNIC_PROTO_H
#define SFNIC_PROTO_H

#include <stdint.h>
#include "rnic/rnic.h"
#include "softnic/cma.h"
#include "softnic/options.h"

#define SFNIC_PROTO_VERSION 1

enum sfnic_op {
	SFNIC_HELLO = 1, /* fd: /proc/self/mem or none; reply fd: the arena */
	SFNIC_WATCH,	 /* turns this connection into the helper thread's */
	SFNIC_OPEN, /* fd: life line; closing its peer closes the context */
	SFNIC_ALLOC_PD,
	SFNIC_DEALLOC_PD,
	SFNIC_REG_MR,
	SFNIC_DEREG_MR,
	SFNIC_REG_FILE_MR, /* as REG_MR; fd: the file that .addr is in */
	SFNIC_REREG_MR,
	SFNIC_ALLOC_MW,
	SFNIC_DEALLOC_MW,
	SFNIC_ALLOC_DM,
	SFNIC_FREE_DM,
	SFNIC_SET_MAPS,	      /* fd: /proc/self/maps */
	SFNIC_CREATE_CHANNEL, /* fd: write end of the event pipe */
	SFNIC_SET_ASYNC,      /* fd: write end of the event pipe */
	SFNIC_CREATE_CQ,
	SFNIC_RESIZE_CQ,
	SFNIC_MODERATE_CQ,
	SFNIC_DESTROY_CQ,
	SFNIC_CREATE_AH,
	SFNIC_DESTROY_AH,
	SFNIC_ATTACH_MCAST,
	SFNIC_DETACH_MCAST,
	SFNIC_CREATE_SRQ,
	SFNIC_MODIFY_SRQ,
	SFNIC_QUERY_SRQ,
	SFNIC_DESTROY_SRQ,
	SFNIC_CREATE_QP,
	SFNIC_MODIFY_QP,
	SFNIC_QUERY_QP,
	SFNIC_DESTROY_QP,
	SFNIC_MODIFY_WQ, /* work queues are created and destroyed as QPs */
	SFNIC_CREATE_WQ_TABLE,
	SFNIC_DESTROY_WQ_TABLE,
	SFNIC_CREATE_FLOW,
	SFNIC_DESTROY_FLOW,
	SFNIC_CREATE_FLOW_COUNTERS,
	SFNIC_READ_FLOW_COUNTERS,
	SFNIC_DESTROY_FLOW_COUNTERS,
	SFNIC_OPEN_QP,	 /* an XRC target */
	SFNIC_OPEN_XRCD, /* fd: the file that names the domain, or none */
	SFNIC_CLOSE_XRCD,
	SFNIC_ALLOC_PAGES, /* arena pages for registered memory */
	SFNIC_FREE_PAGES,
	SFNIC_GET_FD,  /* reply fd: a peer's pipe or memory */
	SFNIC_EVENT,   /* deliver this event for me (pipe full) */
	SFNIC_CM_OPEN, /* fd: the daemon's end of an event channel */
	SFNIC_CM,      /* a command of rdma_cm */
	SFNIC_INFO,    /* for `sfnic devices` and friends */
	SFNIC_DOWN,
	SFNIC_PORT, /* a cable is pulled or plugged in */
};

enum sfnic_fd_kind {
	SFNIC_FD_CHANNEL = 1,
	SFNIC_FD_ASYNC,
	SFNIC_FD_MEM,
	SFNIC_FD_KICK, /* eventfd: rnic_tick() is wanted earlier */
	SFNIC_FD_FILE, /* of registered memory that is a file */
	SFNIC_FD_MAPS, /* of an address space with regions on demand */
};

/* What a process maps accessibly at first. */
#define SFNIC_ARENA_FIRST (RNIC_ARENA_DYNAMIC * 2)

/* Shared by all processes, at RNIC_ARENA_DYNAMIC in the arena. */
#define SFNIC_SHARED_SIZE (1ULL << 20)
struct sfnic_shared {
	/* When the daemon will call rnic_tick(); lowered by anyone. */
	uint64_t next_tick;
	uint32_t uverbs_base; /* number of the first device's node */
	/* Who uses that context, or did last: see below. */
	uint32_t ctx_id[1024];
};

/*
 * Numbers that come back: the low bits are an index, the rest changes with
 * every use, so that a cached descriptor is never taken for a new object's.
 */
#define SFNIC_INDEX_BITS 12
#define SFNIC_INDEX(id) ((id) & ((1u << SFNIC_INDEX_BITS) - 1))
#define SFNIC_MAX_CTX 1024 /* a context's number fits a file position */
#define SFNIC_MAX_SPACE 1024
#define SFNIC_MAX_CHANNEL 4096
#define SFNIC_MAX_FILE 256

_Static_assert(sizeof(((struct sfnic_shared *)0)->ctx_id) ==
		       SFNIC_MAX_CTX * sizeof(uint32_t),
	       "one for each context");

struct sfnic_req {
	uint32_t op;
	uint32_t ctx; /* context that the call is made on */
	union {
		struct {
			uint32_t version;
			int32_t pid;
			uint64_t build; /* of proto, rnic state and sf_hw */
		} hello;
		struct {
			uint32_t dev;
		} open;
		uint32_t id; /* dealloc, dereg (key), destroy; WATCH: space */
		/* .space is filled in by the daemon, but for SPACE_NULL */
		struct rnic_mr_attr mr;
		struct {
			uint32_t key;
			uint32_t mask; /* enum rnic_mr_mask */
			struct rnic_mr_attr attr;
		} rereg_mr;
		struct {
			uint32_t pdn;
			uint32_t type;
		} alloc_mw;
		struct {
			uint64_t len;
		} alloc_dm;
		struct rnic_cq_attr cq; /* .dev likewise */
		struct {
			uint32_t cqn;
			uint32_t log_depth;
		} resize_cq;
		struct {
			uint32_t cqn;
			uint16_t count;
			uint16_t period; /* us */
		} moderate_cq;
		struct {
			uint32_t pdn;
			struct rnic_av av;
		} create_ah;
		struct {
			uint32_t qpn;
			uint32_t mlid;
			uint8_t mgid[16];
		} mcast;
		struct rnic_srq_attr srq; /* .dev likewise */
		struct {
			uint32_t srqn;
			uint32_t resize; /* to log_depth, else: set limit */
			uint32_t log_depth;
			uint32_t limit;
		} modify_srq;
		struct rnic_qp_init qp; /* .dev likewise */
		struct rnic_xrcd_attr xrcd; /* the daemon looks at the file */
		struct {
			uint32_t xrcd;
			uint32_t qpn;
			uint64_t user_handle;
		} open_qp;
		struct {
			uint32_t qpn;
			uint32_t mask;
			struct rnic_qp_attr attr;
		} modify_qp;
		struct {
			uint32_t wqn;
			uint32_t from;
			uint32_t to;
		} modify_wq;
		struct rnic_wq_table_attr wq_table;
		struct rnic_flow_attr flow;
		struct {
			uint32_t dev;
			uint32_t port;
			uint32_t up;
		} port;
		struct {
			uint64_t off; /* free only */
			uint64_t len;
		} pages;
		struct {
			uint32_t kind; /* enum sfnic_fd_kind */
			uint32_t id;   /* channel, ctx_id or address space */
		} fd;
		struct rnic_event event;
		struct cma_req cm;
	};
};

struct sfnic_rsp {
	int32_t err; /* 0 or a positive errno */
	uint32_t id; /* HELLO: address space, else the new object */
	union {
		struct {
			uint64_t size;
			int32_t daemon_pid;
		} arena;
		struct {
			struct rnic_cq_mem mem;
		} cq;
		struct {
			struct rnic_srq_mem mem;
			struct rnic_srq_attr attr;
		} srq;
		struct {
			struct rnic_qp_mem mem;
		} qp;
		struct {
			struct rnic_qp_attr attr;
			struct rnic_qp_init init;
		} query_qp;
		struct {
			uint32_t comp_events; /* raised in the CQ's life */
			uint32_t async_events;
		} destroyed;
		struct rnic_flow_count flow_count;
		struct {
			uint64_t off;
		} pages;
		struct {
			int32_t pid;
			uint32_t users; /* processes that have a device open */
			struct cma_objects cm;
			uint64_t arena_size;
			uint64_t arena_used; /* bytes given out */
			char options[SFNIC_OPTIONS_LINE];
		} info;
		struct cma_rsp cm;
	};
};

#endif
