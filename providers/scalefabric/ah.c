// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "scalefabric.h"

struct ibv_ah *sf_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct sf_create_ah_resp resp = {};
	struct sf_ah *ah = calloc(1, sizeof(*ah));
	int err;

	if (!ah)
		return NULL;
	err = ibv_cmd_create_ah(pd, &ah->ibv_ah, attr, &resp.ibv_resp,
				sizeof(resp));
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}

	ah->number = resp.drv_payload.ah;
	return &ah->ibv_ah;
}

int sf_destroy_ah(struct ibv_ah *ibah)
{
	int err;

	err = ibv_cmd_destroy_ah(ibah);
	if (err)
		return err;

	free(to_sf_ah(ibah));
	return 0;
}
