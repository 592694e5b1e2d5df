import { after, before } from 'node:test';
import { type StartOptions, startToolhost, type TestToolhost } from './toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from './upstreams/recording-upstream.ts';

type Closable = { stop(): unknown } | { close(): unknown };

/**
 * Starts a service before the tests of the enclosing suite and stops it after them. Returns a stand-in that reads each
 * property from the running service, so it can be declared next to the functions that use it.
 */
export function useStarted<Service extends Closable>(start: () => Promise<Service>): Service {
  let service: Service | undefined;
  before(async () => {
    service = await start();
  });
  after(() => service && ('stop' in service ? service.stop() : service.close()));
  return new Proxy({} as Service, { get: (_, name) => service && Reflect.get(service, name) });
}

/** Starts the service and a recording upstream that its tools may call, for the tests of the enclosing suite. */
export function useToolhostWithUpstream(options: StartOptions = {}): {
  toolhost: TestToolhost;
  upstream: RecordingUpstream;
} {
  const upstream = useStarted(startRecordingUpstream);
  const toolhost = useStarted(() =>
    startToolhost({ ...options, egressPorts: [upstream.port, ...(options.egressPorts ?? [])] }),
  );
  return { toolhost, upstream };
}
