import { Alert, Select, Stack, Text } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { useState } from 'react';
import { useLocation, useSearchParams } from 'react-router';
import { Section } from '../../ui/section.tsx';
import { visible } from '../../ui/text/visible.ts';
import { viewsOf } from '../config.ts';
import { useShownServer } from '../server-page.tsx';
import { Clients } from './clients.tsx';
import { ConnectionCheckSection } from './connection-check.tsx';
import { CredentialSection } from './credential-section.tsx';

/** From the address to a connected client: the credential, the snippet, the check. */
export function ConnectTab() {
  const { server } = useShownServer();
  const isNew = (useLocation().state as { isNew?: boolean } | null)?.isNew === true;
  const { view, views, unknown, choose } = useChosenView();
  // A Map, because a view may be called `constructor`.
  const [credentials, setCredentials] = useState<ReadonlyMap<string, string>>(new Map());
  const below = (url: string) => (view === undefined ? url : `${url}/${view}`);
  const isLogin = server.access === 'oauth' || server.access === 'passthrough';
  const isForwarded = server.access === 'caller_token' && !server.open;
  const placeholder = isForwarded ? 'YOUR_TOKEN' : 'YOUR_API_KEY';
  // A key belongs to the address that it was made for; the caller's own token is good at all of them.
  const owner = isForwarded ? '' : (view ?? '');
  const credential = credentials.get(owner) ?? '';
  return (
    <Stack gap="md">
      {isNew && (
        <Alert color="green" icon={<IconCircleCheck size={18} />} title="Your server is running">
          <Text size="sm">It answers at its address now. Connect a client, or try a tool first.</Text>
        </Alert>
      )}
      {unknown !== undefined && (
        <Alert color="yellow" title={`This server has no view ${visible(unknown)}`}>
          <Text size="sm">It may have been removed. Everything below is about the server with all tools.</Text>
        </Alert>
      )}
      {views.length > 0 && <ChooseAddress views={views} chosen={view} onChoose={choose} />}
      <CredentialSection
        key={`credential of ${view ?? ''}`}
        view={view}
        credential={credential}
        onCredential={(given) => setCredentials((known) => new Map(known).set(owner, given))}
        isForwarded={isForwarded}
      />
      <Clients
        connection={{
          name: view === undefined ? server.slug : `${server.slug}-${view}`,
          url: below(server.url),
          hostUrl: server.host_url === undefined ? undefined : below(server.host_url),
          token: isLogin ? undefined : credential || placeholder,
        }}
      />
      <ConnectionCheckSection key={`check of ${view ?? ''}`} slug={server.slug} view={view} />
    </Stack>
  );
}

/** The view in the address of the page, so that it can be linked; `unknown` is one that the server has not. */
function useChosenView() {
  const { config } = useShownServer();
  const { state } = useLocation();
  const [search, setSearch] = useSearchParams();
  const views = Object.keys(viewsOf(config));
  const wanted = search.get('view') || undefined;
  const isKnown = wanted !== undefined && views.includes(wanted);
  return {
    views,
    view: isKnown ? wanted : undefined,
    unknown: isKnown ? undefined : wanted,
    choose: (next: string) =>
      setSearch(next === '' ? {} : { view: next }, { replace: true, preventScrollReset: true, state }),
  };
}

type ChooseAddressProps = {
  views: readonly string[];
  chosen: string | undefined;
  onChoose: (view: string) => void;
};

/** The address of the server, or that of one of its views. */
function ChooseAddress({ views, chosen, onChoose }: ChooseAddressProps) {
  return (
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
        value={chosen ?? ''}
        onChange={(next) => onChoose(next ?? '')}
        allowDeselect={false}
        maw={480}
      />
    </Section>
  );
}
