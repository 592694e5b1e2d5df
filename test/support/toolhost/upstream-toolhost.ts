import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { useFixture } from '../use-fixtures.ts';
import { type StartOptions, startToolhost, type TestToolhost } from './toolhost.ts';

/** Starts an upstream that records its requests, and a service whose tools may call it. */
export async function startToolhostWithUpstream(options: StartOptions = {}) {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ ...options, egressPorts: [upstream.port] });
  return { upstream, toolhost, stop: () => Promise.all([toolhost.stop(), upstream.close()]) };
}

/** Starts an upstream and a service that may call it before the tests of the enclosing suite. Stops them after them. */
export function useToolhostWithUpstream(options: StartOptions = {}): {
  toolhost: TestToolhost;
  upstream: RecordingUpstream;
} {
  const upstream = useFixture(startRecordingUpstream);
  const toolhost = useFixture(() =>
    startToolhost({ ...options, egressPorts: [upstream.port, ...(options.egressPorts ?? [])] }),
  );
  return { toolhost, upstream };
}
