/* The launcher: carries out the plan that it is sent over the status socket, and becomes
 * the command's init. */
#pragma once

/* Enters new namespaces first (CLONE_NEW* flags, in hex), while its caller has other things to do.
 * The exit status is 0 when a command ran, 1 when it could not be started; how it ended goes over
 * the status socket. `ports`: as of network_lead(), NULL when the network leads nowhere. */
int launcher_main(const char *namespaces, const char *ports);
