/** Following one run while its page is open: over the socket, or over the event stream where sockets do not get through. */

import { ApiError, RunSocket, RunStore, type RunState, emptyRun, followRun, hasEnded } from "@atelier/client";
import { useEffect, useState } from "preact/hooks";
import { api, runSocketUrl } from "./gateway.ts";

/** How the news of a run arrive. */
export type Link = "connecting" | "live" | "lost";

/** A batch of frames is drawn at most this often. */
const DRAW_MS = 50;
/** So many failures in a row, without one success, and the socket is given up. */
const SOCKET_TRIES = 2;

/** The state of a run, kept up to date. */
export function useRun(jobId: string): { state: RunState; link: Link } {
  const [held, setHeld] = useState<{ state: RunState; link: Link }>({ state: emptyRun(jobId), link: "connecting" });

  useEffect(() => {
    setHeld({ state: emptyRun(jobId), link: "connecting" });
    const store = new RunStore(jobId, (flush) => void setTimeout(flush, DRAW_MS));
    const unsubscribe = store.subscribe((state) => setHeld((before) => ({ ...before, state })));
    const stop = follow(jobId, store, (link) => setHeld((before) => (before.link === link ? before : { ...before, link })));
    return () => {
      unsubscribe();
      stop();
    };
  }, [jobId]);

  return held.state.jobId === jobId ? held : { state: emptyRun(jobId), link: "connecting" };
}

function follow(jobId: string, store: RunStore, tell: (link: Link) => void): () => void {
  const controller = new AbortController();
  let opened = false;
  const socket = new RunSocket({
    url: runSocketUrl,
    onState: (state, failures) => {
      if (state === "open") {
        opened = true;
        tell("live");
      } else if (state === "closed") {
        store.flush();
        if (!hasEnded(store.state.status) && !controller.signal.aborted) tell("lost");
      } else if (failures >= SOCKET_TRIES && !opened) {
        socket.close();
        void stream();
      } else if (failures > 0) tell("lost");
    },
  });
  const stream = async (): Promise<void> => {
    try {
      await followRun(api, jobId, {
        afterSeq: store.state.lastSeq,
        onFrame: (frame) => store.push(frame),
        onConnected: (connected) => tell(connected ? "live" : "lost"),
        signal: controller.signal,
      });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      tell("lost");
    }
  };
  socket.watch(jobId, { onFrame: (frame) => store.push(frame) });
  const back = (): void => {
    if (!document.hidden) socket.retryNow();
  };
  addEventListener("online", back);
  document.addEventListener("visibilitychange", back);
  return () => {
    controller.abort();
    socket.close();
    removeEventListener("online", back);
    document.removeEventListener("visibilitychange", back);
  };
}
