/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR
 * BSD-2-Clause) */
/*
 * What the scaleFabric provider and the kernel driver (or the software RNIC,
 * which answers the same calls) say to each other: the driver-specific parts of
 * the uverbs commands.
 *
 * Every struct starts with a comp_mask (4 bytes where the core response leaves
 * only 4-byte alignment).  Unknown bits and non-zero padding in a request are
 * answered with EOPNOTSUPP and EINVAL; unknown bits in a response are ignored.
 */
#ifndef RDMA_SCALEFABRIC_ABI_H
#define RDMA_SCALEFABRIC_ABI_H

#include <linux/types.h>

/* uverbs abi_version of the device. */
#define SCALEFABRIC_ABI_VERSION 1

/* device/modalias of the software RNIC; matched as "scalefabric:*". */
#define SCALEFABRIC_MODALIAS_PREFIX "scalefabric:"
#define SCALEFABRIC_PCI_VENDOR 0x1cb8

/* How the device takes a kind of doorbell. */
enum scalefabric_doorbell_mode {
	/* The store is enough. */
	SCALEFABRIC_DOORBELL_DEVICE = 0,
	/*
	 * The store is followed by the matching uverbs write command on cmd_fd:
	 * POST_SEND, POST_RECV or POST_SRQ_RECV with no work request, or
	 * REQ_NOTIFY_CQ.
	 */
	SCALEFABRIC_DOORBELL_NOTIFY = 1,
};

enum scalefabric_clock {
	SCALEFABRIC_CLOCK_UNKNOWN = 0,	 /* ns, from some start */
	SCALEFABRIC_CLOCK_MONOTONIC = 1, /* the host's CLOCK_MONOTONIC */
};

/* Where queue memory comes from. */
enum scalefabric_mem_kind {
	SCALEFABRIC_MEM_DRIVER = 0, /* the driver allocates, answer: a region */
	SCALEFABRIC_MEM_USER = 1,   /* addr: a user address, page aligned */
	SCALEFABRIC_MEM_DMABUF = 2, /* fd and addr: offset in the dmabuf */
};

struct scalefabric_mem {
	__aligned_u64 addr;
	__aligned_u64 length; /* bytes; 0 with MEM_DRIVER */
	__u32 kind;	      /* enum scalefabric_mem_kind */
	__s32 fd;	      /* -1 unless MEM_DMABUF */
};

/*
 * A piece of mappable memory: mmap(length, offset mmap_key on cmd_fd), then
 * @offset bytes in.  Regions with the same key are one mapping.  All zero where
 * the caller brought the memory.
 */
struct scalefabric_region {
	__aligned_u64 mmap_key;
	__aligned_u64 length; /* of the mapping, a multiple of the page size */
	__aligned_u64 offset;
};

/* GET_CONTEXT */
struct scalefabric_alloc_ucontext_req {
	__aligned_u64 comp_mask;
};

struct scalefabric_alloc_ucontext_resp {
	__aligned_u64 comp_mask;
	__u32 hw_version; /* SF_HW_VERSION of the device */
	__u8 sq_doorbell; /* enum scalefabric_doorbell_mode */
	__u8 rq_doorbell;
	__u8 srq_doorbell;
	__u8 cq_doorbell;
	__u32 max_send_sge; /* with the largest slot, no fused signal */
	__u32 max_inline;
	__u32 max_log_depth; /* send and receive queues */
	__u32 max_cq_log_depth;
	__u32 clock; /* enum scalefabric_clock: what timestamps are of */
	__u32 reserved;
};

/* ALLOC_PD; the core response is 4 bytes, so 4-byte members only. */
struct scalefabric_alloc_pd_resp {
	__u32 comp_mask;
	__u32 pdn;
};

/* REG_MR; may be left out: no flags. */
enum scalefabric_mr_flags {
	/*
	 * Reads as zeros, drops what is written; start, length and hca_va are
	 * 0, access is local write.  All addresses are in it.  No rkey.
	 */
	SCALEFABRIC_MR_NULL = 1 << 0,
};

struct scalefabric_reg_mr_req {
	__aligned_u64 comp_mask;
	__u32 flags;
	__u32 reserved;
};

/* CREATE_CQ */
enum scalefabric_cq_flags {
	SCALEFABRIC_CQ_TIMESTAMP = 1 << 0,
	SCALEFABRIC_CQ_DOORBELL_PAGE = 1 << 1, /* a page of its own */
};

struct scalefabric_create_cq_req {
	__aligned_u64 comp_mask;
	struct scalefabric_mem ring; /* 64 << log_depth bytes */
	struct scalefabric_mem ctrl; /* struct sf_cq_ctrl */
	__u32 flags;
	__u8 log_depth;
	__u8 reserved[3];
};

struct scalefabric_create_cq_resp {
	__aligned_u64 comp_mask;
	struct scalefabric_region ring;
	struct scalefabric_region ctrl;
	struct scalefabric_region doorbell;
	__aligned_u64 start; /* index of the first CQE */
	__u32 cqn;
	__u32 reserved;
};

/*
 * RESIZE_CQ.  The caller stores the consumer index and polls no more until the
 * answer; the device moves every CQE in [consumer, producer) to the new ring,
 * same index, lap of the new depth, and fills all other slots such that they
 * read as not yet written.
 */
struct scalefabric_resize_cq_req {
	__aligned_u64 comp_mask;
	struct scalefabric_mem ring;
	__u8 log_depth;
	__u8 reserved[7];
};

struct scalefabric_resize_cq_resp {
	__aligned_u64 comp_mask;
	struct scalefabric_region ring;
};

/* CREATE_QP */
enum scalefabric_qp_flags {
	SCALEFABRIC_QP_DOORBELL_PAGE = 1 << 0, /* a page of its own */
	SCALEFABRIC_QP_POLLED = 1 << 1, /* no send doorbell: watch the head */
	SCALEFABRIC_QP_INLINE_RECV = 1 << 2, /* may use SF_CQE_INLINE */
};

struct scalefabric_create_qp_req {
	__aligned_u64 comp_mask;
	struct scalefabric_mem sq;   /* 1 << (log_depth + log_stride) bytes */
	struct scalefabric_mem line; /* struct sf_send_line */
	struct scalefabric_mem rq;
	__u32 flags;
	__u8 sq_log_depth;
	__u8 sq_log_stride; /* SF_SLOT_LOG_MIN..MAX */
	/*
	 * Both rq fields 0: no receive queue (SRQ, XRC sender).  All four 0: an
	 * XRC target, for which the answer is a number and no region.
	 */
	__u8 rq_log_depth;
	__u8 rq_log_stride; /* SF_RQ_LOG_MIN..MAX */
};

struct scalefabric_create_qp_resp {
	__aligned_u64 comp_mask;
	struct scalefabric_region sq;
	struct scalefabric_region line;
	struct scalefabric_region rq;
	struct scalefabric_region sq_doorbell;
	struct scalefabric_region rq_doorbell;
	__aligned_u64 sq_start; /* index of the first WR */
	__aligned_u64 rq_start; /* index of the first descriptor */
	__u32 qpn;
	__u32 reserved;
};

/*
 * CREATE_QP with an indirection table: spreads what steering rules send it; has
 * no queues, and no driver part in the response.
 */
#define SCALEFABRIC_RX_HASH_TOEPLITZ 1 /* a bit, as in ibv_rx_hash_function */

struct scalefabric_create_hash_qp_req {
	__aligned_u64 comp_mask;
	__aligned_u64 rx_hash_fields; /* enum ibv_rx_hash_fields */
	__u8 rx_hash_function;
	__u8 rx_key_len; /* 40 */
	__u8 reserved[6];
	__u8 rx_key[40];
};

/* CREATE_WQ.  Doorbells as those of receive queues: POST_RECV of @wqn. */
struct scalefabric_create_wq_req {
	__aligned_u64 comp_mask;
	struct scalefabric_mem rq;
	__u32 flags;
	__u8 log_depth;
	__u8 log_stride; /* SF_RQ_LOG_MIN..MAX */
	__u8 reserved[2];
};

struct scalefabric_create_wq_resp {
	__aligned_u64 comp_mask;
	struct scalefabric_region rq;
	struct scalefabric_region doorbell;
	__aligned_u64 start;
	__u32 wqn;
	__u32 reserved;
};

/* COUNTERS_READ answers in this order. */
enum scalefabric_flow_counter {
	SCALEFABRIC_FLOW_PACKETS = 0,
	SCALEFABRIC_FLOW_BYTES = 1,
	SCALEFABRIC_FLOW_COUNTERS,
};

/* QUERY_DEVICE (extended): what the core response does not say. */
struct scalefabric_query_device_resp {
	__aligned_u64 comp_mask;
	__aligned_u64 rx_hash_fields;
	__u8 rx_hash_function;
	__u8 reserved[7];
};

/*
 * MODIFY_QP to RESET has no driver part: the device empties both queues, stores
 * the new SQ start index to the send line (error bit clear) and takes the
 * receive queue's producer index as it stands for its consumer index.
 */

/* CREATE_SRQ */
struct scalefabric_create_srq_req {
	__aligned_u64 comp_mask;
	struct scalefabric_mem ring;
	__u32 flags;
	__u8 log_depth;
	__u8 log_stride;
	__u8 reserved[2];
};

struct scalefabric_create_srq_resp {
	__aligned_u64 comp_mask;
	struct scalefabric_region ring;
	struct scalefabric_region doorbell;
	__aligned_u64 start;
	__u32 srqn;
	__u32 reserved;
};

/*
 * MODIFY_SRQ with a new depth.  The caller posts nothing until the answer; the
 * device moves every descriptor in [consumer, producer) to the new ring, same
 * index.  EINVAL: there are more of them than it holds, or the armed limit is
 * higher.  The command has no response of its own: the answer goes to
 * @response.  A limit is set by another command, without a driver part.
 */
struct scalefabric_modify_srq_req {
	__aligned_u64 comp_mask;
	__aligned_u64 response; /* struct scalefabric_modify_srq_resp */
	struct scalefabric_mem ring;
	__u8 log_depth;
	__u8 reserved[7];
};

struct scalefabric_modify_srq_resp {
	__aligned_u64 comp_mask;
	struct scalefabric_region ring;
};

/*
 * Attributes and methods of the driver's own: UVERBS_ID_DRIVER_NS is where they
 * begin.  For who imports an object.
 */
#define SCALEFABRIC_DRIVER_NS (1U << 12)

enum scalefabric_query_context_attrs {
	/* struct scalefabric_alloc_ucontext_resp */
	SCALEFABRIC_QUERY_CONTEXT_RESP = SCALEFABRIC_DRIVER_NS + 1,
};

/* Of UVERBS_OBJECT_PD: is there such a one? */
enum scalefabric_pd_methods {
	SCALEFABRIC_PD_QUERY = SCALEFABRIC_DRIVER_NS,
};

/* Of UVERBS_OBJECT_DM. */
enum scalefabric_dm_methods {
	SCALEFABRIC_DM_QUERY = SCALEFABRIC_DRIVER_NS,
};

/* Of both. */
enum scalefabric_query_attrs {
	SCALEFABRIC_QUERY_HANDLE = SCALEFABRIC_DRIVER_NS,
	SCALEFABRIC_QUERY_RESP, /* alloc_pd_resp or query_dm_resp */
};

struct scalefabric_query_dm_resp {
	__aligned_u64 comp_mask;
	struct scalefabric_region region;
	__aligned_u64 length; /* as it was asked for */
};

/* CREATE_AH; the core response is 4 bytes, so 4-byte members only. */
struct scalefabric_create_ah_resp {
	__u32 comp_mask;
	__u32 ah; /* index 31:8, tag 7:0 */
};

#endif
