// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Protection domains and memory regions. */
#include "softnic/uverbs_cmd.h"

/* ---- protection domains ---------------------------------------------- */

int uverbs_alloc_pd(struct uverbs_cmd *c)
{
	struct scalefabric_alloc_pd_resp driver = {};
	struct ib_uverbs_alloc_pd_resp resp = {};
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = uverbs_probe(c);
	if (!err)
		err = uverbs_call(c, SFNIC_ALLOC_PD, &req, &rsp);
	if (err)
		return err;
	resp.pd_handle = driver.pdn = rsp.id;
	err = uverbs_put_uhw(c, &driver, sizeof(driver));
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_dealloc_pd(struct uverbs_cmd *c)
{
	struct ib_uverbs_dealloc_pd req;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	return uverbs_call_id(c, SFNIC_DEALLOC_PD, req.pd_handle, &rsp);
}

int uverbs_ioctl_destroy_pd(struct uverbs_cmd *c)
{
	struct sfnic_rsp rsp;

	return uverbs_call_id(c, SFNIC_DEALLOC_PD,
			      c->attr[UVERBS_ATTR_DESTROY_PD_HANDLE].value,
			      &rsp);
}

/* ---- memory regions -------------------------------------------------- */

#define ACCESS_RIGHTS                                                   \
	(IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE | \
	 IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC)
#define ACCESS_SUPPORTED                               \
	(ACCESS_RIGHTS | IB_UVERBS_ACCESS_ZERO_BASED | \
	 IB_UVERBS_ACCESS_OPTIONAL_RANGE)
#define ACCESS_KNOWN                                   \
	(ACCESS_SUPPORTED | IB_UVERBS_ACCESS_MW_BIND | \
	 IB_UVERBS_ACCESS_ON_DEMAND | IB_UVERBS_ACCESS_HUGETLB)

_Static_assert(
	(int)RNIC_LOCAL_WRITE == (int)IB_UVERBS_ACCESS_LOCAL_WRITE &&
		(int)RNIC_REMOTE_WRITE == (int)IB_UVERBS_ACCESS_REMOTE_WRITE &&
		(int)RNIC_REMOTE_READ == (int)IB_UVERBS_ACCESS_REMOTE_READ &&
		(int)RNIC_REMOTE_ATOMIC == (int)IB_UVERBS_ACCESS_REMOTE_ATOMIC,
	"rights are passed on as they are");

static int check_access(uint32_t access)
{
	if (access & ~ACCESS_KNOWN)
		return EINVAL;
	if (access & ~ACCESS_SUPPORTED)
		return EOPNOTSUPP;
	/* IBTA vol. 1, 10.6.3.1: who may write from afar may write here. */
	if (access & (IB_UVERBS_ACCESS_REMOTE_WRITE |
		      IB_UVERBS_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IB_UVERBS_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

static int check_range(const struct ib_uverbs_reg_mr *req)
{
	uint64_t in_page = req->start & (RNIC_PAGE - 1);

	/* Pages are registered: both addresses lie at one place in theirs. */
	if (in_page != (req->hca_va & (RNIC_PAGE - 1)))
		return EINVAL;
	if (!req->length && !in_page)
		return EINVAL;
	if (req->start + req->length < req->start ||
	    req->hca_va + req->length < req->hca_va)
		return EINVAL;
	return 0;
}

int uverbs_reg_mr(struct uverbs_cmd *c)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct rnic_mr_attr attr = {};
	struct ib_uverbs_reg_mr req;
	uint32_t key;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = check_range(&req);
	if (!err)
		err = check_access(req.access_flags);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;

	attr.addr = req.start;
	attr.len = req.length;
	attr.iova =
		req.access_flags & IB_UVERBS_ACCESS_ZERO_BASED ? 0 : req.hca_va;
	/* Optional flags are hints that nothing here needs. */
	attr.access = req.access_flags & ACCESS_RIGHTS;
	attr.pdn = req.pd_handle;
	err = c->ops->reg_mr(c->ctx, &attr, &key);
	if (err)
		return err;
	resp.mr_handle = resp.lkey = resp.rkey = key;
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_dereg_mr(struct uverbs_cmd *c)
{
	struct ib_uverbs_dereg_mr req;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	return err ? err : c->ops->dereg_mr(c->ctx, req.mr_handle);
}

int uverbs_ioctl_destroy_mr(struct uverbs_cmd *c)
{
	return c->ops->dereg_mr(c->ctx,
				c->attr[UVERBS_ATTR_DESTROY_MR_HANDLE].value);
}
