// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What scripts/bench gda compiles and counts: each post of sf_gda.h, whole. */
#include "scalefabric/sf_gda.h"

#define KERNEL(name, call)                                                    \
	extern "C" __global__ void name(struct sf_gda_qp *q,                  \
					struct sf_gda_mem to,                 \
					struct sf_gda_mem from, sf_u32 bytes, \
					struct sf_gda_signal s, int *res)     \
	{                                                                     \
		sf_u64 ticket;                                                \
                                                                              \
		(void)s;                                                      \
		*res = call;                                                  \
	}

KERNEL(put_exclusive, sf_gda_put(q, to, from, bytes, SF_GDA_EXCLUSIVE, &ticket))
KERNEL(put_shared, sf_gda_put(q, to, from, bytes, 0, &ticket))
KERNEL(put_signal_exclusive,
       sf_gda_put_signal(q, to, from, bytes, s, SF_GDA_EXCLUSIVE, &ticket))
KERNEL(put_signal_shared, sf_gda_put_signal(q, to, from, bytes, s, 0, &ticket))
KERNEL(put_warp,
       sf_gda_put_lanes(q, threadIdx.x % 32, 32, to, from, bytes, 0, &ticket))

extern "C" __global__ void batch_of_32(struct sf_gda_qp *q,
				       struct sf_gda_mem to,
				       struct sf_gda_mem from, sf_u32 bytes,
				       int *res)
{
	sf_u64 index;
	sf_u32 head = 0, i;

	*res = sf_gda_reserve(q, 32, 0, &index);
	if (*res)
		return;
	for (i = 0; i < 32; i++, to.addr += bytes, from.addr += bytes)
		head = sf_gda_fill_put(sf_gda_slot(q, index + i), to, from,
				       bytes, 0);
	sf_gda_post_batch(q, index, 32, head, 0);
}
