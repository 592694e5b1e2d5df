import { startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { type StartOptions, startToolhost } from './toolhost.ts';

/** Starts an upstream that records its requests, and a service whose tools may call it. */
export async function startToolhostWithUpstream(options: StartOptions = {}) {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ ...options, egressPorts: [upstream.port] });
  return { upstream, toolhost, stop: () => Promise.all([toolhost.stop(), upstream.close()]) };
}
