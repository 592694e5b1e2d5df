import type { Candidate, NameSource } from './candidates.ts';

/** How long the service may take; a person waits at the prompt. */
const patienceMs = 1500;

/** Names from the service of the command line under the cursor. What cannot be found out is left out. */
export function knownNames(env: NodeJS.ProcessEnv): NameSource {
  const client = async (given: ReadonlyMap<string, string>) => {
    const [{ connectionOf }, { createRestClient }] = await Promise.all([
      import('../connection/connect.ts'),
      import('../connection/rest-client.ts'),
    ]);
    const options = Object.fromEntries([...given].filter(([name]) => ['url', 'key', 'profile'].includes(name)));
    const { url, credential } = await connectionOf(options, env);
    // Tokens are not renewed here: that could take longer, and what is shown would depend on it.
    return createRestClient({ url, credential: { token: credential.token } }, patienceMs);
  };
  return {
    slugs: async (given) => {
      const { servers } = await (await client(given)).run('listMcpServers', { limit: 200 });
      return servers.map(({ slug, name }) => ({ word: slug, meaning: name })).filter(isPlain);
    },
    tools: async (slug, given) => {
      const { oneServer } = await import('../connection/one-server.ts');
      const { tools } = (await oneServer(await client(given), slug)).config;
      return tools.map(({ name, description = '' }) => ({ word: name, meaning: description })).filter(isPlain);
    },
    async profiles() {
      const [{ readProfiles }, { configFolder }] = await Promise.all([
        import('../profiles/profiles.ts'),
        import('../profiles/config-folder.ts'),
      ]);
      const { urls } = readProfiles(configFolder(env, process.platform));
      return [...urls].map(([word, meaning]) => ({ word, meaning }));
    },
  };
}

/** Shells insert words as they are, so a name of a strange service has nothing that they would run, and is no option. */
function isPlain({ word }: Candidate): boolean {
  return /^\w[\w.-]{0,99}$/.test(word);
}
