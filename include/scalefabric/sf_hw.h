/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scaleFabric hardware contract: what a poster writes and what the device
 * writes back.  Shared by CPUs and GPUs: compiles as C11, C++17, CUDA, HIP and
 * OpenCL C.  docs/hardware.md is the programmer's reference for this file.
 *
 * Little-endian, natural alignment, no bit-fields.  The ring is the truth: a
 * request becomes real by one 8-byte store of its commit word; a doorbell only
 * tells the device to look.
 */
#ifndef SF_HW_H
#define SF_HW_H

#if defined(__OPENCL_C_VERSION__) || defined(__OPENCL_VERSION__)
typedef uchar sf_u8;
typedef ushort sf_u16;
typedef uint sf_u32;
typedef ulong sf_u64;
#else
#include <stdint.h>
typedef uint8_t sf_u8;
typedef uint16_t sf_u16;
typedef uint32_t sf_u32;
typedef uint64_t sf_u64;
#endif

#if defined(__cplusplus)
#define SF_STATIC_ASSERT(cond, msg) static_assert(cond, msg)
#else
#define SF_STATIC_ASSERT(cond, msg) _Static_assert(cond, msg)
#endif
#if defined(__CUDA__) || defined(__CUDACC__) || defined(__HIP__)
#define SF_INLINE                                                       \
	static __inline__ __attribute__((host)) __attribute__((device)) \
	__attribute__((unused))
#else
#define SF_INLINE static inline __attribute__((unused))
#endif
#define SF_ASSERT_AT(type, member, offset)                             \
	SF_STATIC_ASSERT(__builtin_offsetof(type, member) == (offset), \
			 #member " moved")

/* Version of everything in this file; alloc_ucontext returns the device's. */
#define SF_HW_VERSION 2

/* ------------------------------------------------------------------------
 * Send queue
 */

/* Slot stride: 1 << log2, chosen at create.  One WQE is one slot. */
#define SF_SLOT_LOG_MIN 6 /* 64 B */
#define SF_SLOT_LOG_MAX 9 /* 512 B */
#define SF_SLOT_DATA 0x20 /* gather list or inline data start here */
#define SF_SLOT_ARGS 0x30 /* signal or atomic operands, 16 bytes */
#define SF_SLOT_ARGS_SIZE 16

/* Opcode: commit word bits 7:0. */
enum sf_opcode {
	SF_OP_NOP = 0x00,
	SF_OP_SEND = 0x01,
	SF_OP_SEND_IMM = 0x02,
	SF_OP_SEND_INV = 0x03,
	SF_OP_WRITE = 0x04,
	SF_OP_WRITE_IMM = 0x05,
	SF_OP_READ = 0x06,
	SF_OP_ATOMIC_CAS = 0x07,
	SF_OP_ATOMIC_FADD = 0x08,
	SF_OP_ATOMIC_WRITE = 0x09,
	SF_OP_LOCAL_INV = 0x0a,
	SF_OP_BIND_MW = 0x0b,
};

/* Flags: commit word bits 31:16, given here as values of those 16 bits. */
enum sf_wqe_flags {
	SF_WQE_SIGNALED = 1 << 0, /* make a CQE when it succeeds */
	SF_WQE_FENCE = 1 << 1, /* start after all earlier READs and atomics */
	SF_WQE_SOLICITED = 1 << 2,
	SF_WQE_INLINE = 1 << 3,	 /* payload is in the slot, n_sge must be 0 */
	SF_WQE_SIGNAL = 1 << 4,	 /* fused signal, operands at SF_SLOT_ARGS */
	SF_WQE_WEAK = 1 << 5,	 /* the signal follows this payload only */
	SF_WQE_COUNTER = 1 << 6, /* count in counter_id when done */
	SF_WQE_NOFETCH = 1 << 7, /* atomic without a result; n_sge is 0 */
	SF_WQE_CHECKSUMS = 1 << 8, /* raw: write those of IP, TCP, UDP */
};

/* Commit word: opcode 7:0, n_sge 15:8, flags 31:16, lap 63:32. */
#define SF_COMMIT_NSGE_SHIFT 8
#define SF_COMMIT_FLAGS_SHIFT 16
#define SF_COMMIT_LAP_SHIFT 32

struct sf_sge {
	sf_u64 addr;
	sf_u32 length; /* bytes; 0 means 0 */
	sf_u32 lkey;
};

/*
 * First 64 bytes of a slot.  A member is read only where opcode and flags
 * say so; the rest may hold anything.
 */
struct sf_wqe {
	sf_u64 commit;	   /* stored last, see sf_commit() */
	sf_u16 inline_len; /* bytes of inline data */
	sf_u16 counter_id;
	sf_u32 xrc_srqn;
	sf_u64 remote_addr; /* UD: ah 31:0, remote QPN 63:32 */
	sf_u32 rkey;	    /* UD: Q_Key */
	sf_u32 imm;	    /* immediate (bytes as sent) or key to invalidate */
	struct sf_sge sge0; /* SF_SLOT_DATA: first SGE or inline data */
	sf_u64 arg0;	    /* signal address | swap or add | data */
	sf_u64 arg1; /* signal rkey 31:0, addend 63:32 | compare | data */
};

SF_STATIC_ASSERT(sizeof(struct sf_sge) == 16, "SGE is 16 bytes");
SF_STATIC_ASSERT(sizeof(struct sf_wqe) == 64, "smallest slot is 64 bytes");
SF_ASSERT_AT(struct sf_wqe, inline_len, 0x08);
SF_ASSERT_AT(struct sf_wqe, counter_id, 0x0a);
SF_ASSERT_AT(struct sf_wqe, xrc_srqn, 0x0c);
SF_ASSERT_AT(struct sf_wqe, remote_addr, 0x10);
SF_ASSERT_AT(struct sf_wqe, rkey, 0x18);
SF_ASSERT_AT(struct sf_wqe, imm, 0x1c);
SF_ASSERT_AT(struct sf_wqe, sge0, SF_SLOT_DATA);
SF_ASSERT_AT(struct sf_wqe, arg0, SF_SLOT_ARGS);
SF_ASSERT_AT(struct sf_wqe, arg1, 0x38);

/*
 * The data area of a slot starts at SF_SLOT_DATA.  A fused signal or an atomic
 * takes bytes 0x30..0x3f out of it: what would lie there lies at 0x40 and on.
 * Returns the offset in the slot of byte @pos of the data area.
 */
SF_INLINE sf_u32 sf_slot_data_offset(sf_u32 pos, int args_used)
{
	if (args_used && pos >= SF_SLOT_ARGS - SF_SLOT_DATA)
		pos += SF_SLOT_ARGS_SIZE;
	return SF_SLOT_DATA + pos;
}

/*
 * SF_OP_BIND_MW, at SF_SLOT_DATA; n_sge is 0.  The rest is in the head: rkey is
 * the key that the window is to have (its index names the window), imm the lkey
 * of the region, remote_addr the first byte, as the region counts.
 */
struct sf_bind {
	sf_u64 length; /* 0 closes a window of type 1 */
	sf_u32 access; /* enum sf_access */
	sf_u32 reserved;
};

/* Same values as enum ibv_access_flags; others say nothing here. */
enum sf_access {
	SF_ACCESS_REMOTE_WRITE = 1 << 1,
	SF_ACCESS_REMOTE_READ = 1 << 2,
	SF_ACCESS_REMOTE_ATOMIC = 1 << 3,
	SF_ACCESS_ZERO_BASED = 1 << 5, /* type 2: its addresses begin at 0 */
};

SF_STATIC_ASSERT(sizeof(struct sf_bind) == 16, "as an SGE");
SF_ASSERT_AT(struct sf_bind, access, 0x08);

/* Inline bytes or, divided by 16, SGEs that a slot of @stride bytes holds. */
SF_INLINE sf_u32 sf_slot_capacity(sf_u32 stride, int args_used)
{
	return stride - SF_SLOT_DATA - (args_used ? SF_SLOT_ARGS_SIZE : 0);
}

/*
 * Lap of WR index @index in a ring of 1 << @log_depth slots.  The first index
 * of a queue is a multiple of the depth and at least the depth, so lap 0 is
 * never used before index 2^(32 + log_depth) and a zeroed ring is empty.
 */
SF_INLINE sf_u32 sf_lap(sf_u64 index, sf_u32 log_depth)
{
	return (sf_u32)(index >> log_depth);
}

SF_INLINE sf_u64 sf_commit(sf_u32 opcode, sf_u32 n_sge, sf_u32 flags,
			   sf_u64 index, sf_u32 log_depth)
{
	return (sf_u64)opcode | (sf_u64)n_sge << SF_COMMIT_NSGE_SHIFT |
	       (sf_u64)flags << SF_COMMIT_FLAGS_SHIFT |
	       (sf_u64)sf_lap(index, log_depth) << SF_COMMIT_LAP_SHIFT;
}

SF_INLINE sf_u32 sf_commit_opcode(sf_u64 commit)
{
	return (sf_u32)(commit & 0xff);
}

SF_INLINE sf_u32 sf_commit_nsge(sf_u64 commit)
{
	return (sf_u32)(commit >> SF_COMMIT_NSGE_SHIFT) & 0xff;
}

SF_INLINE sf_u32 sf_commit_flags(sf_u64 commit)
{
	return (sf_u32)(commit >> SF_COMMIT_FLAGS_SHIFT) & 0xffff;
}

SF_INLINE sf_u32 sf_commit_lap(sf_u64 commit)
{
	return (sf_u32)(commit >> SF_COMMIT_LAP_SHIFT);
}

/* ------------------------------------------------------------------------
 * Doorbells: 8 bytes in a 64-byte cell, written by the poster only.
 * SQ: producer index, a hint.  RQ, SRQ: producer index, the truth.
 * CQ: any value, "read the control line".
 */
struct sf_doorbell {
	sf_u64 value;
	sf_u8 reserved[56];
};

SF_STATIC_ASSERT(sizeof(struct sf_doorbell) == 64, "one cell, one line");

/* ------------------------------------------------------------------------
 * Send line: written by the device only, at every WQE that completes
 * (signaled or not, possibly coalesced) and when the QP enters ERR.
 * A waiter loops while (word < target): an error ends every wait.
 */
#define SF_LINE_INDEX_MASK ((1ULL << 56) - 1)
#define SF_LINE_ERROR (1ULL << 63)
#define SF_LINE_NO_FAILED (~0ULL)

struct sf_send_line {
	sf_u64 word;   /* 55:0 every WQE below succeeded, 63 error */
	sf_u64 failed; /* index of the first failed WQE or NO_FAILED */
	sf_u32 status; /* enum sf_status of that WQE */
	sf_u32 syndrome;
	sf_u8 reserved[40];
};

SF_STATIC_ASSERT(sizeof(struct sf_send_line) == 64, "one line");
SF_ASSERT_AT(struct sf_send_line, failed, 0x08);
SF_ASSERT_AT(struct sf_send_line, status, 0x10);
SF_ASSERT_AT(struct sf_send_line, syndrome, 0x14);

/* Completion counter, in memory that its creator chose. */
struct sf_counter {
	sf_u64 success;
	sf_u64 error;
	sf_u8 reserved[48];
};

SF_STATIC_ASSERT(sizeof(struct sf_counter) == 64, "one line");

/* ------------------------------------------------------------------------
 * Completion queue
 */

/* Same values as enum ibv_wc_status (IBTA vol. 1, 11.6.2). */
enum sf_status {
	SF_ST_SUCCESS = 0,
	SF_ST_LOC_LEN_ERR = 1,
	SF_ST_LOC_QP_OP_ERR = 2,
	SF_ST_LOC_EEC_OP_ERR = 3,
	SF_ST_LOC_PROT_ERR = 4,
	SF_ST_WR_FLUSH_ERR = 5,
	SF_ST_MW_BIND_ERR = 6,
	SF_ST_BAD_RESP_ERR = 7,
	SF_ST_LOC_ACCESS_ERR = 8,
	SF_ST_REM_INV_REQ_ERR = 9,
	SF_ST_REM_ACCESS_ERR = 10,
	SF_ST_REM_OP_ERR = 11,
	SF_ST_RETRY_EXC_ERR = 12,
	SF_ST_RNR_RETRY_EXC_ERR = 13,
	SF_ST_LOC_RDD_VIOL_ERR = 14,
	SF_ST_REM_INV_RD_REQ_ERR = 15,
	SF_ST_REM_ABORT_ERR = 16,
	SF_ST_INV_EECN_ERR = 17,
	SF_ST_INV_EEC_STATE_ERR = 18,
	SF_ST_FATAL_ERR = 19,
	SF_ST_RESP_TIMEOUT_ERR = 20,
	SF_ST_GENERAL_ERR = 21,
};

/* What exactly was wrong; reported as vendor_err. */
enum sf_syndrome {
	SF_SYN_NONE = 0,
	SF_SYN_OPCODE = 1, /* opcode or flag unknown or not for this QP */
	SF_SYN_SLOT = 2,   /* n_sge or inline_len does not fit the slot */
	SF_SYN_KEY = 3,	   /* no such key, stale tag, or freed */
	SF_SYN_PD = 4,	   /* key of another protection domain */
	SF_SYN_ACCESS = 5, /* right not granted to this key */
	SF_SYN_BOUNDS = 6, /* outside of the region */
	SF_SYN_FAULT = 7,  /* the memory behind the key is not mapped */
	SF_SYN_LENGTH = 8, /* message longer than allowed or than the buffer */
	SF_SYN_ALIGN = 9,  /* atomic not 8-byte aligned */
	SF_SYN_TIMEOUT = 10,  /* no answer, retry_cnt used up */
	SF_SYN_RNR = 11,      /* no receive posted, rnr_retry used up */
	SF_SYN_PSN = 12,      /* sequence error, retry_cnt used up */
	SF_SYN_QP_STATE = 13, /* flushed: QP in ERR */
	SF_SYN_RING = 14,     /* queue memory holds an impossible value */
	SF_SYN_DEPTH = 15,    /* more READs and atomics than the peer takes */
	SF_SYN_PEER = 16,     /* the peer answered with a NAK */
};

/* CQE opcode: that of the WQE, or one of these. */
enum sf_cqe_opcode {
	SF_CQE_RECV = 0x80,
	SF_CQE_RECV_RDMA_IMM = 0x81,
};

enum sf_cqe_flags {
	SF_CQE_IMM = 1 << 0, /* imm holds an immediate */
	SF_CQE_INV = 1 << 1, /* imm holds the key that was invalidated */
	SF_CQE_GRH = 1 << 2,
	SF_CQE_INLINE =
		1 << 3, /* the payload is in data[], not in the buffer */
	SF_CQE_SOLICITED = 1 << 4,
	SF_CQE_CHECKSUMS_OK = 1 << 5, /* raw: those of IPv4 and TCP or UDP */
	SF_CQE_XRC = 1 << 6,	      /* the receive was of SRQ srqn */
};

#define SF_CQE_INLINE_MAX 16

/* The network header of a datagram, IBTA annex A17, 17.4.5.1. */
enum {
	SF_CQE_SL_IPV6 = 1,
	SF_CQE_SL_IPV4 = 2,
};

/* Word: opcode 7:0, status 15:8, flags 31:16, syndrome 55:32, lap 63:56. */
#define SF_CQE_STATUS_SHIFT 8
#define SF_CQE_FLAGS_SHIFT 16
#define SF_CQE_SYNDROME_SHIFT 32
#define SF_CQE_LAP_SHIFT 56

struct sf_cqe {
	sf_u8 data[SF_CQE_INLINE_MAX];
	sf_u64 wr; /* send: WR index; receive: cookie of the descriptor */
	sf_u64 timestamp; /* ns of the device clock, if the CQ asks for it */
	sf_u32 byte_len;
	sf_u32 imm; /* raw: tag of the steering rule */
	sf_u32 qpn; /* of the local QP or work queue */
	sf_u32 src_qpn;
	sf_u16 slid;
	sf_u16 pkey_index;
	sf_u8 sl; /* datagrams on Ethernet: SF_CQE_SL_* */
	sf_u8 path_bits;
	sf_u16 srqn; /* receives of XRC */
	sf_u64 word; /* stored last */
};

SF_STATIC_ASSERT(sizeof(struct sf_cqe) == 64, "CQE is 64 bytes");
SF_ASSERT_AT(struct sf_cqe, wr, 0x10);
SF_ASSERT_AT(struct sf_cqe, timestamp, 0x18);
SF_ASSERT_AT(struct sf_cqe, byte_len, 0x20);
SF_ASSERT_AT(struct sf_cqe, imm, 0x24);
SF_ASSERT_AT(struct sf_cqe, qpn, 0x28);
SF_ASSERT_AT(struct sf_cqe, src_qpn, 0x2c);
SF_ASSERT_AT(struct sf_cqe, slid, 0x30);
SF_ASSERT_AT(struct sf_cqe, pkey_index, 0x32);
SF_ASSERT_AT(struct sf_cqe, sl, 0x34);
SF_ASSERT_AT(struct sf_cqe, path_bits, 0x35);
SF_ASSERT_AT(struct sf_cqe, srqn, 0x36);
SF_ASSERT_AT(struct sf_cqe, word, 0x38);

SF_INLINE sf_u64 sf_cqe_word(sf_u32 opcode, sf_u32 status, sf_u32 flags,
			     sf_u32 syndrome, sf_u64 index, sf_u32 log_depth)
{
	return (sf_u64)opcode | (sf_u64)status << SF_CQE_STATUS_SHIFT |
	       (sf_u64)flags << SF_CQE_FLAGS_SHIFT |
	       (sf_u64)(syndrome & 0xffffff) << SF_CQE_SYNDROME_SHIFT |
	       (sf_u64)(sf_lap(index, log_depth) & 0xff) << SF_CQE_LAP_SHIFT;
}

SF_INLINE sf_u32 sf_cqe_lap(sf_u64 word)
{
	return (sf_u32)(word >> SF_CQE_LAP_SHIFT);
}

SF_INLINE sf_u32 sf_cqe_opcode(sf_u64 word)
{
	return (sf_u32)(word & 0xff);
}

SF_INLINE sf_u32 sf_cqe_status(sf_u64 word)
{
	return (sf_u32)(word >> SF_CQE_STATUS_SHIFT) & 0xff;
}

SF_INLINE sf_u32 sf_cqe_flags(sf_u64 word)
{
	return (sf_u32)(word >> SF_CQE_FLAGS_SHIFT) & 0xffff;
}

SF_INLINE sf_u32 sf_cqe_syndrome(sf_u64 word)
{
	return (sf_u32)(word >> SF_CQE_SYNDROME_SHIFT) & 0xffffff;
}

/*
 * CQ control line: written by the consumer only.  Arm word: index 55:0,
 * mode 63:62; an event is wanted for a CQE of that index or a later one.
 */
#define SF_CQ_INDEX_MASK ((1ULL << 56) - 1)
#define SF_CQ_ARM_SHIFT 62

enum sf_cq_arm {
	SF_CQ_ARM_NONE = 0,
	SF_CQ_ARM_SOLICITED = 1,
	SF_CQ_ARM_ANY = 2,
};

struct sf_cq_ctrl {
	sf_u64 consumer; /* CQEs below it are free again */
	sf_u64 arm;
	sf_u8 reserved[48];
};

SF_STATIC_ASSERT(sizeof(struct sf_cq_ctrl) == 64, "one line");
SF_ASSERT_AT(struct sf_cq_ctrl, arm, 0x08);

/* ------------------------------------------------------------------------
 * Receive queue and shared receive queue: a ring of descriptors of
 * 1 << log2 bytes, each a header and then n_sge SGEs.
 */
#define SF_RQ_LOG_MIN 5 /* 32 B: one SGE */
#define SF_RQ_LOG_MAX 9 /* 512 B: 31 SGEs */

struct sf_rq_desc {
	sf_u32 cookie; /* comes back in sf_cqe.wr */
	sf_u16 n_sge;
	sf_u16 reserved0;
	sf_u64 reserved1;
};

SF_STATIC_ASSERT(sizeof(struct sf_rq_desc) == 16, "SGEs follow at 16");
SF_ASSERT_AT(struct sf_rq_desc, n_sge, 0x04);

/* ------------------------------------------------------------------------
 * Keys (lkey, rkey) and address handles: index 31:8, tag 7:0.  A freed one
 * comes back with another tag.
 */
#define SF_KEY_TAG_BITS 8
#define SF_KEY_INDEX(key) ((key) >> SF_KEY_TAG_BITS)
#define SF_KEY_TAG(key) ((key) & ((1U << SF_KEY_TAG_BITS) - 1))

/* Limits of the format. */
#define SF_MAX_SEND_SGE 30
#define SF_MAX_RECV_SGE 31
#define SF_MAX_INLINE 480
#define SF_MAX_LOG_DEPTH 15 /* send and receive queues */
#define SF_MAX_CQ_LOG_DEPTH 22
#define SF_MAX_MSG (1U << 31) /* IBTA vol. 1, 9.7.1 */

#endif
