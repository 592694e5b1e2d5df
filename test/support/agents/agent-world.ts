import type { ClientConnection } from '@toolhost/mcp-clients/client';
import { type HonestProvider, startHonestProvider } from '../oauth/honest-provider.ts';
import { startToolhost, type TestToolhost } from '../toolhost/toolhost.ts';
import { startClientDocuments } from '../upstreams/client-documents.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { type Agent, startAgent } from './agent.ts';
import type { AgentKind } from './agent-kinds.ts';
import { type Person, startPerson } from './person.ts';

/** An agent with its own home, model, and person, and a service whose servers it is connected to. */
export type AgentWorld = Omit<Agent, 'connect'> & {
  toolhost: TestToolhost;
  provider: HonestProvider;
  upstream: RecordingUpstream;
  person: Person;
  /** Connects it to exactly these servers. Without a key it logs in, at another hostname of this machine. */
  connect(servers: readonly { slug: string; key?: string }[]): Promise<void>;
};

export async function startAgentWorld(kind: AgentKind): Promise<AgentWorld> {
  const [person, documents] = await Promise.all([startPerson('Anna'), startClientDocuments()]);
  const agent = await startAgent(kind, person, documents.publish('/agent')).catch(async (error: unknown) => {
    await Promise.all([person.close(), documents.close()]);
    throw error;
  });
  const [provider, upstream] = await Promise.all([startHonestProvider(), startRecordingUpstream()]);
  const toolhost = await startToolhost({
    egressPorts: [provider.port, upstream.port],
    runtimeOptions: documents.runtimeOptions,
  });
  return {
    ...agent,
    toolhost,
    provider,
    upstream,
    person,
    connect: (servers) =>
      agent.connect(
        servers.map(({ slug, key }): ClientConnection => {
          const url = new URL(`/mcp/${slug}`, toolhost.url);
          if (key === undefined) url.hostname = 'localhost';
          return { name: slug, url: url.href, token: key };
        }),
      ),
    async stop() {
      await toolhost.stop();
      await agent.stop();
      await Promise.all([person, provider, upstream, documents].map((service) => service.close()));
    },
  };
}
