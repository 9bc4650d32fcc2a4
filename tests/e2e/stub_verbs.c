// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded, it lets the installed libibverbs answer as a release would whose
 * struct ibv_qp_ex has one function more: this is how releases 44 and 45 grew
 * under an unchanged version of the private interface.
 */
#include <stdint.h>

#include <infiniband/verbs.h>

#define VERBS_QP_EX (1 << 1)

struct grown_verbs_qp {
	union {
		struct ibv_qp qp;
		struct {
			struct ibv_qp_ex qp_ex;
			void (*one_more)(struct ibv_qp_ex *qp);
		};
	};
	uint32_t comp_mask;
};

__attribute__((visibility("default"))) struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct grown_verbs_qp *grown = (struct grown_verbs_qp *)qp;

	return grown->comp_mask & VERBS_QP_EX ? &grown->qp_ex : NULL;
}
