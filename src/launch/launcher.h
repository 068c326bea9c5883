/* The launcher: carries out the plan that it is sent over the status socket, and becomes
 * the command's init. */
#pragma once

/* The exit status is 0 when a command ran, 1 when it could not be started; how it ended goes over
 * the status socket. */
int launcher_main(void);
