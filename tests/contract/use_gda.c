// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every function of sf_gda.h, used from device code: compiled as C11, C++17,
 * CUDA, HIP and OpenCL C by ./run.
 */
#include "scalefabric/sf_gda.h"

#if defined(__CUDACC__) || defined(__HIP__)
#define KERNEL __attribute__((global))
#elif defined(__OPENCL_C_VERSION__) || defined(__OPENCL_VERSION__)
#define KERNEL __kernel
#else
#define KERNEL
#endif

KERNEL void use_gda(SF_GDA_GLOBAL struct sf_gda_qp *q,
		    SF_GDA_GLOBAL struct sf_counter *counter,
		    SF_GDA_GLOBAL sf_u64 *word, sf_u32 lane, sf_u32 lanes);

KERNEL void use_gda(SF_GDA_GLOBAL struct sf_gda_qp *q,
		    SF_GDA_GLOBAL struct sf_counter *counter,
		    SF_GDA_GLOBAL sf_u64 *word, sf_u32 lane, sf_u32 lanes)
{
	struct sf_gda_mem remote = {0x1000, 1}, own = {0x2000, 2};
	struct sf_gda_signal signal = {0x3000, 3, -1};
	sf_u64 data[4] = {1, 2, 3, 4}, index, ticket = 0, value;
	sf_u32 head, i;
	int res = 0;

	res |= sf_gda_put(q, remote, own, 64, SF_GDA_EXCLUSIVE, &ticket);
	res |= sf_gda_put_imm(q, remote, own, 64, 7, SF_GDA_TRY, &ticket);
	res |= sf_gda_put_inline(q, remote, data, 32, SF_GDA_NO_RING, &ticket);
	res |= sf_gda_put_signal(q, remote, own, 64, signal, SF_GDA_COUNT(5),
				 &ticket);
	res |= sf_gda_signal(q, signal, SF_WQE_WEAK, &ticket);
	res |= sf_gda_get(q, own, remote, 64, SF_WQE_SIGNALED, &ticket);
	res |= sf_gda_add(q, remote, 1, 0, &ticket);
	res |= sf_gda_fetch_add(q, remote, 1, own, 0, &ticket);
	res |= sf_gda_cas(q, remote, 1, 2, own, 0, &ticket);
	res |= sf_gda_put_lanes(q, lane, lanes, remote, own, 64, 0, &ticket);
	if (!sf_gda_reserve(q, 4, 0, &index)) {
		head = 0;
		for (i = 0; i < 4; i++)
			head = sf_gda_fill_put(sf_gda_slot(q, index + i),
					       remote, own, 8, 0);
		sf_gda_post_batch(q, index, 4, head, 0);
	}
	res |= sf_gda_nops(q, index, 1, 100);
	res |= sf_gda_test(q, ticket);
	res |= sf_gda_wait(q, ticket, 100);
	res |= sf_gda_quiet(q, 100);
	res |= sf_gda_wait_signal(q, word, 3, 100);
	res |= sf_gda_wait_change(q, word, 3, 100, &value);
	res |= sf_gda_wait_counter(counter, value, 100);
	if (res)
		sf_gda_poison(q);
}
