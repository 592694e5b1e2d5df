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

/** Steps to connect a client: URL, credential, snippet, and check. */
export function ConnectTab() {
  const { server } = useShownServer();
  const isNew = (useLocation().state as { isNew?: boolean } | null)?.isNew === true;
  const { view, address } = useChosenView();
  // Map, because a view may be named `constructor`.
  const [credentials, setCredentials] = useState<ReadonlyMap<string, string>>(new Map());
  const below = (url: string) => (view === undefined ? url : `${url}/${view}`);
  const isLogin = server.access === 'oauth' || server.access === 'passthrough';
  const isForwarded = server.access === 'caller_token' && !server.open;
  // A key belongs to the URL that it was created for. The caller's own token works for all of them.
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
          <Text size="sm">It is available at its URL now. Connect a client, or try a tool first.</Text>
        </Alert>
      )}
      {address}
      {isLogin ? (
        <Section
          title="Credential"
          text="None needed. The client opens the login page when it connects for the first time."
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

/** Returns the view in the page URL, and a control to choose one if the server has views. */
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
          <Text size="sm">It may have been removed. This page shows the server with all tools.</Text>
        </Alert>
      )}
      {views.length > 0 && (
        <Section
          title="URL"
          text="A view exposes a subset of the tools, with its own texts and limits. The key, snippets, and check below are for the selected URL."
        >
          <Select
            label="Connect to"
            data={[
              { value: '', label: 'Server with all tools' },
              ...views.map((name) => ({ value: name, label: `View ${visible(name)}` })),
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
