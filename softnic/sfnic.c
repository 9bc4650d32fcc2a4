/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `sfnic`: runs programs on the software RNIC, and shows what is going on in
 * it.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "softnic/sfnic.h"

static const char usage[] =
	"usage: sfnic run [OPTIONS] [--] PROGRAM [ARGS]\n"
	"       sfnic devices [--instance NAME]\n"
	"       sfnic stat [--json] [--instance NAME]\n"
	"       sfnic port DEVICE[/PORT] up|down [--instance NAME]\n"
	"       sfnic down [--force] [--instance NAME]\n"
	"\n"
	"run      runs PROGRAM with software RDMA devices in place of the "
	"host's\n"
	"devices  lists the devices\n"
	"stat     shows objects, queue pairs and counters\n"
	"port     plugs a port's cable in, or pulls it\n"
	"down     ends the fabric; it also ends by itself when unused\n"
	"\n"
	"Options of run, with their defaults:\n"
	"  --devices N             how many devices (1)\n"
	"  --ports N               ports of each device (1)\n"
	"  --link-layer LAYER      infiniband or ethernet (infiniband)\n"
	"  --mtu BYTES             256, 512, 1024, 2048, 4096 or auto (auto)\n"
	"  --name PREFIX           of the devices (sfab: sfab0, sfab1, ...)\n"
	"  --arena SIZE            address space for queues and memory (32G)\n"
	"  --linger SECONDS        how long an unused fabric stays (10)\n"
	"  --addr IP=N,...         addresses of device N for rdma_cm (all: 0)\n"
	"  --host-devices show     the host's own RDMA devices, too (hide)\n"
	"  --instance NAME         a fabric of its own\n"
	"\n"
	"See sfnic(1).\n";

static int show_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fputs(usage, stdout);
	return 0;
}

static int show_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("sfnic " SFNIC_VERSION);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"run", sfnic_run},	     {"devices", sfnic_devices},
	{"stat", sfnic_stat},	     {"down", sfnic_down},
	{"port", sfnic_port},	     {"--help", show_help},
	{"help", show_help},	     {"-h", show_help},
	{"--version", show_version}, {"version", show_version},
};

void sfnic_say(const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "sfnic: %s\n", line);
}

/*
 * Whoever called us may have closed fds 0 to 2: our own files must not get
 * these numbers.  The program to run finds them as the caller left them.
 */
static void hold_standard_fds(void)
{
	int fd;

	for (fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) < 0)
			return;
}

int main(int argc, char **argv)
{
	size_t i;

	hold_standard_fds();
	if (argc < 2) {
		fputs(usage, stderr);
		return 2;
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	sfnic_say("'%s' is not a command; see sfnic --help", argv[1]);
	return 2;
}
