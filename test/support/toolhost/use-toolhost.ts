import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { type Fixtures, useFixtures } from '../use-fixtures.ts';
import { type StartOptions, startToolhost, type TestToolhost } from './toolhost.ts';

/** Starts a service and an upstream that its tools may call, for the tests of the enclosing suite. */
export function useToolhost(
  options: StartOptions = {},
  fixtures: Fixtures = useFixtures(),
): { toolhost: TestToolhost; upstream: RecordingUpstream } {
  const upstream = fixtures.start(startRecordingUpstream);
  const egressPorts = options.egressPorts ?? [];
  const toolhost = fixtures.start(() => startToolhost({ ...options, egressPorts: [upstream.port, ...egressPorts] }));
  return { toolhost, upstream };
}
