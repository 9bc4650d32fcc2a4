// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "scalefabric.h"

struct ibv_mr *sf_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			 uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	err = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, mr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->ibv_mr;
}

int sf_dereg_mr(struct verbs_mr *mr)
{
	int err;

	err = ibv_cmd_dereg_mr(mr);
	if (err)
		return err;

	free(mr);
	return 0;
}
