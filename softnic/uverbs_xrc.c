// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XRC domains, and the opening of target queue pairs. */
#include <fcntl.h>
#include <unistd.h>

#include "softnic/uverbs_cmd.h"

/* ---- domains: errors are those of the kernel's uverbs ---------------- */

static int open_xrcd(const struct uverbs_cmd *c, int32_t fd, uint32_t oflags,
		     uint32_t *xrcd)
{
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int inode = -1, err;

	/* Without a file it can only be a new one, asked for or not. */
	req.xrcd.create = fd == -1 || oflags & O_CREAT;
	req.xrcd.exclusive = !!(oflags & O_EXCL);
	req.xrcd.has_file = fd != -1;
	if (fd != -1) {
		inode = c->ops->inode_fd(fd);
		if (inode < 0)
			return -inode;
	}
	err = uverbs_call_fd(c, SFNIC_OPEN_XRCD, &req, inode, &rsp);
	if (inode >= 0)
		c->ops->close_fd(inode);
	if (!err)
		*xrcd = rsp.id;
	return err;
}

int uverbs_open_xrcd(struct uverbs_cmd *c)
{
	struct ib_uverbs_open_xrcd_resp resp = {};
	struct ib_uverbs_open_xrcd cmd;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err)
		err = uverbs_probe(c);
	if (!err)
		err = open_xrcd(c, cmd.fd, cmd.oflags, &resp.xrcd_handle);
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_close_xrcd(struct uverbs_cmd *c)
{
	struct ib_uverbs_close_xrcd cmd;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	return err ? err :
		     uverbs_call_id(c, SFNIC_CLOSE_XRCD, cmd.xrcd_handle, &rsp);
}

int uverbs_ioctl_destroy_xrcd(struct uverbs_cmd *c)
{
	struct sfnic_rsp rsp;

	return uverbs_call_id(c, SFNIC_CLOSE_XRCD,
			      c->attr[UVERBS_ATTR_DESTROY_XRCD_HANDLE].value,
			      &rsp);
}

/* ---- target queue pairs ---------------------------------------------- */

int uverbs_open_qp(struct uverbs_cmd *c)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ib_uverbs_open_qp cmd;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (!err)
		err = uverbs_get_uhw(c, NULL, 0);
	if (!err && cmd.qp_type != IB_UVERBS_QPT_XRC_TGT)
		err = EINVAL;
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;
	req.open_qp.xrcd = cmd.pd_handle;
	req.open_qp.qpn = cmd.qpn;
	req.open_qp.user_handle = cmd.user_handle;
	err = uverbs_call(c, SFNIC_OPEN_QP, &req, &rsp);
	if (err)
		return err;
	resp.qp_handle = rsp.id;
	resp.qpn = cmd.qpn;
	return uverbs_respond(c, &resp, sizeof(resp));
}
