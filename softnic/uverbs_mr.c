// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Protection domains, memory regions and windows, device memory. */
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

int uverbs_ioctl_query_pd(struct uverbs_cmd *c)
{
	struct scalefabric_alloc_pd_resp driver = {};
	int err;

	driver.pdn = c->attr[UVERBS_SLOT_UHW_IN].value;
	err = c->ops->query_pd(c->ctx, driver.pdn);
	return err ? err : uverbs_put_uhw(c, &driver, sizeof(driver));
}

/* ---- memory regions -------------------------------------------------- */

/* Huge pages and optional flags are hints that nothing here needs. */
#define ACCESS_RIGHTS                                                    \
	(IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |  \
	 IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC | \
	 IB_UVERBS_ACCESS_MW_BIND | IB_UVERBS_ACCESS_ZERO_BASED |        \
	 IB_UVERBS_ACCESS_ON_DEMAND)
#define ACCESS_KNOWN                                \
	(ACCESS_RIGHTS | IB_UVERBS_ACCESS_HUGETLB | \
	 IB_UVERBS_ACCESS_OPTIONAL_RANGE)

_Static_assert(
	(int)RNIC_LOCAL_WRITE == (int)IB_UVERBS_ACCESS_LOCAL_WRITE &&
		(int)RNIC_REMOTE_WRITE == (int)IB_UVERBS_ACCESS_REMOTE_WRITE &&
		(int)RNIC_REMOTE_READ == (int)IB_UVERBS_ACCESS_REMOTE_READ &&
		(int)RNIC_REMOTE_ATOMIC ==
			(int)IB_UVERBS_ACCESS_REMOTE_ATOMIC &&
		(int)RNIC_MW_BIND == (int)IB_UVERBS_ACCESS_MW_BIND &&
		(int)RNIC_ZERO_BASED == (int)IB_UVERBS_ACCESS_ZERO_BASED &&
		(int)RNIC_ON_DEMAND == (int)IB_UVERBS_ACCESS_ON_DEMAND,
	"rights are passed on as they are");

static int check_access(uint32_t access)
{
	if (access & ~ACCESS_KNOWN)
		return EINVAL;
	/* IBTA vol. 1, 10.6.3.1: who may write from afar may write here. */
	if (access & (IB_UVERBS_ACCESS_REMOTE_WRITE |
		      IB_UVERBS_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IB_UVERBS_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

static int check_range(uint64_t start, uint64_t length, uint64_t hca_va)
{
	uint64_t in_page = start & (RNIC_PAGE - 1);

	/* Pages are registered: both addresses lie at one place in theirs. */
	if (in_page != (hca_va & (RNIC_PAGE - 1)))
		return EINVAL;
	if (!length && !in_page)
		return EINVAL;
	if (start + length < start || hca_va + length < hca_va)
		return EINVAL;
	return 0;
}

/* The whole address space: on demand only, and of no page size. */
static int check_whole(uint64_t length, uint32_t access)
{
	if (length != UINT64_MAX)
		return 0;
	if (!(access & IB_UVERBS_ACCESS_ON_DEMAND))
		return EFAULT;
	return access & IB_UVERBS_ACCESS_HUGETLB ? EINVAL : 0;
}

/* Zeros that nobody pays for: all addresses, no rkey. */
static int check_null(const struct ib_uverbs_reg_mr *req)
{
	return req->start || req->length || req->hca_va ||
			       req->access_flags !=
				       IB_UVERBS_ACCESS_LOCAL_WRITE ?
		       EINVAL :
		       0;
}

static int reg_mr_flags(const struct uverbs_cmd *c, uint32_t *flags)
{
	struct scalefabric_reg_mr_req req = {};
	int err;

	*flags = 0;
	if (!c->attr[UVERBS_SLOT_UHW_IN].len)
		return 0;
	err = uverbs_get_uhw(c, &req, sizeof(req));
	if (err)
		return err;
	if (req.reserved)
		return EINVAL;
	if (req.comp_mask || req.flags & ~SCALEFABRIC_MR_NULL)
		return EOPNOTSUPP;
	*flags = req.flags;
	return 0;
}

int uverbs_reg_mr(struct uverbs_cmd *c)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct rnic_mr_attr attr = {};
	struct ib_uverbs_reg_mr req;
	uint32_t key, flags;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		err = reg_mr_flags(c, &flags);
	if (err)
		return err;
	if (flags & SCALEFABRIC_MR_NULL)
		err = check_null(&req);
	else
		err = check_range(req.start, req.length, req.hca_va);
	if (!err)
		err = check_access(req.access_flags);
	if (!err)
		err = check_whole(req.length, req.access_flags);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;

	attr.addr = req.start;
	attr.len = req.length;
	attr.iova =
		req.access_flags & IB_UVERBS_ACCESS_ZERO_BASED ? 0 : req.hca_va;
	attr.access = req.access_flags & ACCESS_RIGHTS;
	attr.pdn = req.pd_handle;
	if (flags & SCALEFABRIC_MR_NULL) {
		attr.space = RNIC_SPACE_NULL;
		attr.len = UINT64_MAX;
	}
	err = c->ops->reg_mr(c->ctx, &attr, &key);
	if (err)
		return err;
	resp.mr_handle = resp.lkey = key;
	resp.rkey = flags & SCALEFABRIC_MR_NULL ? 0 : key;
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

/* Flags are those of libibverbs. */
#define REREG_SUPPORTED (RNIC_MR_TRANSLATION | RNIC_MR_PD | RNIC_MR_ACCESS)

static int check_rereg(const struct ib_uverbs_rereg_mr *req)
{
	int err = 0;

	if (!req->flags)
		return EINVAL;
	if (req->flags & ~REREG_SUPPORTED)
		return EOPNOTSUPP;
	if (req->flags & RNIC_MR_TRANSLATION)
		err = check_range(req->start, req->length, req->hca_va);
	if (!err && req->flags & RNIC_MR_ACCESS)
		err = check_access(req->access_flags);
	return err;
}

int uverbs_rereg_mr(struct uverbs_cmd *c)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	struct rnic_mr_attr attr = {};
	struct ib_uverbs_rereg_mr req;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = check_rereg(&req);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;

	attr.addr = req.start;
	attr.len = req.length;
	attr.iova = req.hca_va;
	attr.access = req.access_flags & ACCESS_RIGHTS;
	attr.pdn = req.pd_handle;
	err = c->ops->rereg_mr(c->ctx, req.mr_handle, req.flags, &attr);
	if (err)
		return err;
	resp.lkey = resp.rkey = req.mr_handle;
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_query_mr(struct uverbs_cmd *c)
{
	uint32_t key = c->attr[UVERBS_ATTR_QUERY_MR_HANDLE].value, rkey;
	struct rnic_mr_attr attr;
	int err;

	err = c->ops->query_mr(c->ctx, key, &attr);
	if (err)
		return err;
	rkey = attr.space == RNIC_SPACE_NULL ? 0 : key;
	err = uverbs_put(&c->attr[UVERBS_ATTR_QUERY_MR_RESP_LKEY], &key,
			 sizeof(key));
	if (!err)
		err = uverbs_put(&c->attr[UVERBS_ATTR_QUERY_MR_RESP_RKEY],
				 &rkey, sizeof(rkey));
	if (!err)
		err = uverbs_put(&c->attr[UVERBS_ATTR_QUERY_MR_RESP_LENGTH],
				 &attr.len, sizeof(attr.len));
	if (!err)
		err = uverbs_put(&c->attr[UVERBS_ATTR_QUERY_MR_RESP_IOVA],
				 &attr.iova, sizeof(attr.iova));
	return err;
}

/* ---- dmabuf ---------------------------------------------------------- */

#define DMABUF_ACCESS                                                    \
	(IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |  \
	 IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC | \
	 IB_UVERBS_ACCESS_OPTIONAL_RANGE)

int uverbs_ioctl_reg_dmabuf_mr(struct uverbs_cmd *c)
{
	struct rnic_mr_attr attr = {};
	uint64_t access = c->attr[UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS].value;
	uint64_t fd = c->attr[UVERBS_ATTR_REG_DMABUF_MR_FD].value;
	uint32_t key;
	int err;

	attr.addr = c->attr[UVERBS_ATTR_REG_DMABUF_MR_OFFSET].value;
	attr.len = c->attr[UVERBS_ATTR_REG_DMABUF_MR_LENGTH].value;
	attr.iova = c->attr[UVERBS_ATTR_REG_DMABUF_MR_IOVA].value;
	attr.pdn = c->attr[UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE].value;
	attr.access = access & ACCESS_RIGHTS;
	if (access & ~(uint64_t)DMABUF_ACCESS || !attr.len)
		return EINVAL;
	if (fd > INT32_MAX)
		return EBADF;
	err = check_access(access);
	if (!err)
		err = check_range(attr.addr, attr.len, attr.iova);
	if (!err)
		err = uverbs_probe(c);
	if (!err)
		err = c->ops->reg_dmabuf(c->ctx, fd, &attr, &key);
	if (err)
		return err;
	c->result = key;
	err = uverbs_put(&c->attr[UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY], &key,
			 sizeof(key));
	if (!err)
		err = uverbs_put(&c->attr[UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY],
				 &key, sizeof(key));
	return err;
}

/* ---- advice ---------------------------------------------------------- */

static int prefetch(const struct uverbs_cmd *c, uint32_t pdn, uint64_t advice,
		    const struct ib_uverbs_sge *sge)
{
	bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct rnic_mr_attr mr;

	if (c->ops->query_mr(c->ctx, sge->lkey, &mr))
		return ENOENT;
	if (mr.pdn != pdn)
		return EPERM;
	if (!(mr.access & RNIC_ON_DEMAND))
		return EINVAL;
	if (write && !(mr.access & RNIC_LOCAL_WRITE))
		return EPERM;
	if (sge->addr < mr.iova || sge->addr - mr.iova > mr.len ||
	    sge->length > mr.len - (sge->addr - mr.iova))
		return EFAULT;
	/* No page table to fill: without a fault there is nothing to do. */
	if (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ||
	    !sge->length)
		return 0;
	return c->ops->prefetch(sge->addr - mr.iova + mr.addr, sge->length,
				write);
}

int uverbs_ioctl_advise_mr(struct uverbs_cmd *c)
{
	uint32_t pdn = c->attr[UVERBS_ATTR_ADVISE_MR_PD_HANDLE].value;
	uint64_t advice = c->attr[UVERBS_ATTR_ADVISE_MR_ADVICE].value;
	uint64_t flags = c->attr[UVERBS_ATTR_ADVISE_MR_FLAGS].value;
	const struct uverbs_buf *list =
		&c->attr[UVERBS_ATTR_ADVISE_MR_SGE_LIST];
	struct ib_uverbs_sge sge;
	uint64_t at;
	int err;

	if (flags & ~(uint64_t)IB_UVERBS_ADVISE_MR_FLAG_FLUSH ||
	    list->len % sizeof(sge))
		return EINVAL;
	if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	err = c->ops->query_pd(c->ctx, pdn);
	for (at = 0; !err && at < list->len; at += sizeof(sge)) {
		err = uverbs_copy_in(&sge, list->addr + at, sizeof(sge));
		if (!err)
			err = prefetch(c, pdn, advice, &sge);
	}
	return err;
}

/* ---- device memory --------------------------------------------------- */

#define MAX_DM_LOG_ALIGN 12 /* its pages */

int uverbs_ioctl_alloc_dm(struct uverbs_cmd *c)
{
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	req.alloc_dm.len = c->attr[UVERBS_ATTR_ALLOC_DM_LENGTH].value;
	if (!req.alloc_dm.len ||
	    c->attr[UVERBS_ATTR_ALLOC_DM_ALIGNMENT].value > MAX_DM_LOG_ALIGN)
		return EINVAL;
	if (req.alloc_dm.len > RNIC_MAX_DM_SIZE)
		return ENOMEM;
	err = uverbs_probe(c);
	if (!err)
		err = uverbs_call(c, SFNIC_ALLOC_DM, &req, &rsp);
	c->result = rsp.id;
	return err;
}

int uverbs_ioctl_free_dm(struct uverbs_cmd *c)
{
	struct sfnic_rsp rsp;

	return uverbs_call_id(c, SFNIC_FREE_DM,
			      c->attr[UVERBS_ATTR_FREE_DM_HANDLE].value, &rsp);
}

int uverbs_ioctl_query_dm(struct uverbs_cmd *c)
{
	struct scalefabric_query_dm_resp resp = {};
	uint64_t off, len;
	int err;

	err = c->ops->query_dm(c->ctx, c->attr[UVERBS_SLOT_UHW_IN].value, &off,
			       &len);
	if (err)
		return err;
	resp.region.mmap_key = off;
	resp.region.length = (len + RNIC_PAGE - 1) & ~(uint64_t)(RNIC_PAGE - 1);
	resp.length = len;
	return uverbs_put_uhw(c, &resp, sizeof(resp));
}

int uverbs_ioctl_reg_dm_mr(struct uverbs_cmd *c)
{
	struct rnic_mr_attr attr = {};
	uint64_t access = c->attr[UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS].value;
	uint32_t key;
	int err;

	/* Its place in memory is nobody's business. */
	if (!(access & IB_UVERBS_ACCESS_ZERO_BASED) ||
	    access & IB_UVERBS_ACCESS_ON_DEMAND || access > UINT32_MAX)
		return EINVAL;
	err = check_access(access);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;
	attr.addr = c->attr[UVERBS_ATTR_REG_DM_MR_OFFSET].value;
	attr.len = c->attr[UVERBS_ATTR_REG_DM_MR_LENGTH].value;
	attr.access = access & ACCESS_RIGHTS;
	attr.pdn = c->attr[UVERBS_ATTR_REG_DM_MR_PD_HANDLE].value;
	attr.dm = c->attr[UVERBS_ATTR_REG_DM_MR_DM_HANDLE].value;
	if (!attr.dm)
		return EINVAL;
	err = c->ops->reg_mr(c->ctx, &attr, &key);
	if (err)
		return err;
	c->result = key;
	err = uverbs_put(&c->attr[UVERBS_ATTR_REG_DM_MR_RESP_LKEY], &key,
			 sizeof(key));
	if (!err)
		err = uverbs_put(&c->attr[UVERBS_ATTR_REG_DM_MR_RESP_RKEY],
				 &key, sizeof(key));
	return err;
}

/* ---- memory windows -------------------------------------------------- */

int uverbs_alloc_mw(struct uverbs_cmd *c)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct ib_uverbs_alloc_mw mw;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &mw, sizeof(mw));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;
	req.alloc_mw.pdn = mw.pd_handle;
	req.alloc_mw.type = mw.mw_type;
	err = uverbs_call(c, SFNIC_ALLOC_MW, &req, &rsp);
	if (err)
		return err;
	resp.mw_handle = resp.rkey = rsp.id;
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_dealloc_mw(struct uverbs_cmd *c)
{
	struct ib_uverbs_dealloc_mw req;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	return err ? err :
		     uverbs_call_id(c, SFNIC_DEALLOC_MW, req.mw_handle, &rsp);
}

int uverbs_ioctl_destroy_mw(struct uverbs_cmd *c)
{
	struct sfnic_rsp rsp;

	return uverbs_call_id(c, SFNIC_DEALLOC_MW,
			      c->attr[UVERBS_ATTR_DESTROY_MW_HANDLE].value,
			      &rsp);
}
