import { Alert, Select, Stack, Text } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { useState } from 'react';
import { useLocation, useSearchParams } from 'react-router';
import { Section } from '../../ui/section.tsx';
import { visible } from '../../ui/text/visible.ts';
import { viewsOf } from '../config.ts';
import { LoginCheck } from '../login-check/login-check.tsx';
import { useShownServer } from '../server-page.tsx';
import { Clients } from './clients.tsx';
import { ConnectionCheckSection } from './connection-check.tsx';
import { KeyCredential, TokenCredential } from './credentials.tsx';

/** From the address to a connected client: the credential, the snippet, the check. */
export function ConnectTab() {
  const { server } = useShownServer();
  const isNew = (useLocation().state as { isNew?: boolean } | null)?.isNew === true;
  const { view, address } = useChosenView();
  // A Map, because a view may be called `constructor`.
  const [credentials, setCredentials] = useState<ReadonlyMap<string, string>>(new Map());
  const below = (url: string) => (view === undefined ? url : `${url}/${view}`);
  const isLogin = server.access === 'oauth' || server.access === 'passthrough';
  const isForwarded = server.access === 'caller_token' && !server.open;
  // A key belongs to the address that it was made for; the caller's own token is good at all of them.
  const owner = isForwarded ? '' : (view ?? '');
  const given = {
    credential: credentials.get(owner) ?? '',
    onCredential: (credential: string) => setCredentials((known) => new Map(known).set(owner, credential)),
  };
  const token = given.credential || (isForwarded ? 'YOUR_TOKEN' : 'YOUR_API_KEY');
  return (
    <Stack gap="md">
      {isNew && (
        <Alert color="green" icon={<IconCircleCheck size={18} />} title="Your server is running">
          <Text size="sm">It answers at its address now. Connect a client, or try a tool first.</Text>
        </Alert>
      )}
      {address}
      {isLogin ? (
        <Section
          title="Credential"
          text="None to copy: the client opens the login when it connects for the first time."
        >
          <LoginCheck slug={server.slug} url={server.url} />
        </Section>
      ) : isForwarded ? (
        <TokenCredential {...given} />
      ) : (
        <KeyCredential key={`credential of ${view ?? ''}`} view={view} {...given} />
      )}
      <Clients
        connection={{
          name: view === undefined ? server.slug : `${server.slug}-${view}`,
          url: below(server.url),
          hostUrl: server.host_url && below(server.host_url),
          token: isLogin ? undefined : token,
        }}
      />
      <ConnectionCheckSection key={`check of ${view ?? ''}`} slug={server.slug} view={view} />
    </Stack>
  );
}

/** The address of the server, or of the view that the address of the page names; with the choice where there are views. */
function useChosenView() {
  const { config } = useShownServer();
  const { state } = useLocation();
  const [search, setSearch] = useSearchParams();
  const views = Object.keys(viewsOf(config));
  const wanted = search.get('view') ?? '';
  const view = views.includes(wanted) ? wanted : undefined;
  const choose = (next: string | null) =>
    setSearch(next ? { view: next } : {}, { replace: true, preventScrollReset: true, state });
  const address = (
    <>
      {wanted !== '' && view === undefined && (
        <Alert color="yellow" title={`This server has no view ${visible(wanted)}`}>
          <Text size="sm">It may have been removed. Everything below is about the server with all tools.</Text>
        </Alert>
      )}
      {views.length > 0 && (
        <Section
          title="Address"
          text="A view has some of the tools, with texts and limits of its own. The key, the snippets and the check below are for the address that you choose."
        >
          <Select
            label="Connect to"
            data={[
              { value: '', label: 'The server with all tools' },
              ...views.map((name) => ({ value: name, label: `The view ${visible(name)}` })),
            ]}
            value={view ?? ''}
            onChange={choose}
            allowDeselect={false}
            maw={480}
          />
        </Section>
      )}
    </>
  );
  return { view, address };
}
