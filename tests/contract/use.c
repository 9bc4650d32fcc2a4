// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every function of sf_hw.h, used from device code: compiled as C11, C++17,
 * CUDA, HIP and OpenCL C by ./run.  The asserts inside of the header do the
 * rest.
 */
#include "scalefabric/sf_hw.h"

#if defined(__CUDACC__) || defined(__HIP__)
#define KERNEL __attribute__((global))
#define SHARED
#elif defined(__OPENCL_C_VERSION__) || defined(__OPENCL_VERSION__)
#define KERNEL __kernel
#define SHARED __global
#else
#define KERNEL
#define SHARED
#endif

/* Constants usable where a constant expression is required. */
SF_STATIC_ASSERT(SF_SLOT_DATA + sizeof(struct sf_sge) == SF_SLOT_ARGS,
		 "the first SGE ends where the operands begin");
SF_STATIC_ASSERT((1U << SF_SLOT_LOG_MIN) == sizeof(struct sf_wqe), "");
SF_STATIC_ASSERT(SF_LINE_ERROR > SF_LINE_INDEX_MASK, "an error ends waits");
SF_STATIC_ASSERT(sizeof(struct sf_rq_desc) + sizeof(struct sf_sge) ==
			 1U << SF_RQ_LOG_MIN,
		 "");
SF_STATIC_ASSERT(SF_MAX_INLINE == (1U << SF_SLOT_LOG_MAX) - SF_SLOT_DATA, "");
SF_STATIC_ASSERT(SF_MAX_SEND_SGE * 16 == SF_MAX_INLINE, "");
SF_STATIC_ASSERT(SF_MAX_RECV_SGE * 16 + 16 == 1U << SF_RQ_LOG_MAX, "");

KERNEL void use_everything(
	SHARED struct sf_wqe *slot, SHARED struct sf_doorbell *doorbell,
	SHARED const struct sf_send_line *line, SHARED const struct sf_cqe *cqe,
	SHARED struct sf_cq_ctrl *ctrl, SHARED struct sf_rq_desc *desc,
	SHARED struct sf_counter *counter, sf_u64 index, sf_u32 log_depth);

KERNEL void use_everything(
	SHARED struct sf_wqe *slot, SHARED struct sf_doorbell *doorbell,
	SHARED const struct sf_send_line *line, SHARED const struct sf_cqe *cqe,
	SHARED struct sf_cq_ctrl *ctrl, SHARED struct sf_rq_desc *desc,
	SHARED struct sf_counter *counter, sf_u64 index, sf_u32 log_depth)
{
	sf_u64 commit =
		sf_commit(SF_OP_WRITE, 1, SF_WQE_SIGNALED, index, log_depth);
	sf_u64 word = sf_cqe_word(SF_CQE_RECV, SF_ST_SUCCESS, SF_CQE_INLINE,
				  SF_SYN_NONE, index, log_depth);

	slot->sge0.length = sf_slot_capacity(64, 0);
	slot->imm = sf_slot_data_offset(16, 1);
	slot->rkey = SF_KEY_INDEX(slot->rkey) + SF_KEY_TAG(slot->rkey);
	slot->commit = commit;
	doorbell->value = index + 1;
	desc->cookie = sf_commit_opcode(commit) + sf_commit_nsge(commit) +
		       sf_commit_flags(commit) + sf_commit_lap(commit) +
		       sf_lap(index, log_depth);
	counter->success = line->word & SF_LINE_INDEX_MASK;
	counter->error = sf_cqe_opcode(word) + sf_cqe_status(word) +
			 sf_cqe_flags(word) + sf_cqe_syndrome(word);
	if (sf_cqe_lap(cqe->word) == (sf_lap(index, log_depth) & 0xff))
		ctrl->consumer = index + 1;
	ctrl->arm = (sf_u64)SF_CQ_ARM_ANY << SF_CQ_ARM_SHIFT |
		    (index & SF_CQ_INDEX_MASK);
}
