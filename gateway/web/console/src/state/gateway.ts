/** The one way to the gateway, and whether it can be reached. */

import { Api, socketUrl } from "@atelier/client";
import { signal } from "@preact/signals";

export const api = new Api();

export const runSocketUrl = socketUrl(location.origin);

/** Whether the last request got an answer. */
export const reachable = signal(true);
