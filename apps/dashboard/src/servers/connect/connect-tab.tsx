import { Alert, Select, Stack, Text } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck } from '@tabler/icons-react';
import { useState } from 'react';
import { useLocation, useSearchParams } from 'react-router';
import { Section } from '../../ui/section.tsx';
import { TextLink } from '../../ui/text/text-link.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { hasLoginPage } from '../access.ts';
import { getViews } from '../config.ts';
import { LoginCheck } from '../login-check/login-check.tsx';
import { useCurrentServer } from '../server-page.tsx';
import { Clients } from './clients.tsx';
import { ConnectionCheckSection } from './connection-check.tsx';
import { KeyCredential, TokenCredential } from './credentials.tsx';
import { LoginChoice } from './login-choice.tsx';

/** Secret that could not be stored after the server was created. */
export type NotStored = { name: string; reason: string };

/** Steps to connect a client: URL, credential, snippet, and check. */
export function ConnectTab() {
  const { server } = useCurrentServer();
  const { isNew = false, notStored = [] } = (useLocation().state ?? {}) as { isNew?: boolean; notStored?: NotStored[] };
  const { view, urlSection } = useSelectedView();
  // A map, because a view may be named `constructor`.
  const [credentials, setCredentials] = useState<ReadonlyMap<string, string>>(new Map());
  const toViewUrl = (url: string) => (view === undefined ? url : `${url}/${view}`);
  const [usesKey, setUsesKey] = useState(false);
  const hasLogin = hasLoginPage(server) && !usesKey;
  const isForwarded = server.access === 'caller_token' && !server.open;
  // A key belongs to the URL that it was created for. The caller's own token works for all of them.
  const credentialOwner = isForwarded ? '' : (view ?? '');
  const credentialProps = {
    credential: credentials.get(credentialOwner) ?? server.example_token ?? '',
    onCredential: (credential: string) =>
      setCredentials((previous) => new Map(previous).set(credentialOwner, credential)),
  };
  const token = credentialProps.credential || (isForwarded ? 'YOUR_TOKEN' : 'YOUR_API_KEY');
  return (
    <Stack gap="md">
      {isNew && notStored.length === 0 && (
        <Alert color="green" icon={<IconCircleCheck size={18} />} title="Your server is running">
          <Text size="sm">It is available at its URL now. Connect a client, or try a tool first.</Text>
        </Alert>
      )}
      {notStored.map(({ name, reason }) => (
        <Alert
          key={name}
          color="red"
          icon={<IconAlertTriangle size={18} />}
          title={`The server was created, but the secret ${name} was not stored`}
          role="alert"
        >
          <Text size="sm">
            {reason}{' '}
            <TextLink to={`/servers/${server.slug}/settings/secrets?name=${name}`} underline="always">
              Set it again
            </TextLink>
          </Text>
        </Alert>
      ))}
      {urlSection}
      {server.access === 'login' && <LoginChoice usesKey={usesKey} onChange={setUsesKey} />}
      {hasLogin ? (
        <Section
          title="Credential"
          text="None needed. The client opens the login page when it connects for the first time."
        >
          <LoginCheck slug={server.slug} url={server.url} hasProvider={server.access !== 'login'} />
        </Section>
      ) : isForwarded ? (
        <TokenCredential {...credentialProps} />
      ) : (
        <KeyCredential key={`credential of ${view ?? ''}`} view={view} {...credentialProps} />
      )}
      <Clients
        connection={{
          name: view === undefined ? server.slug : `${server.slug}-${view}`,
          url: toViewUrl(server.url),
          hostUrl: server.host_url && toViewUrl(server.host_url),
          token: hasLogin ? undefined : token,
        }}
      />
      <ConnectionCheckSection key={`check of ${view ?? ''}`} slug={server.slug} view={view} />
    </Stack>
  );
}

/** Returns the view in the page URL, and a control to choose one if the server has views. */
function useSelectedView() {
  const { config } = useCurrentServer();
  const { state } = useLocation();
  const [search, setSearch] = useSearchParams();
  const views = Object.keys(getViews(config));
  const requestedView = search.get('view') ?? '';
  const view = views.includes(requestedView) ? requestedView : undefined;
  const choose = (next: string | null) =>
    setSearch(next ? { view: next } : {}, { replace: true, preventScrollReset: true, state });
  const urlSection = (
    <>
      {requestedView !== '' && view === undefined && (
        <Alert color="yellow" title={`This server has no view ${toVisible(requestedView)}`}>
          <Text size="sm">It may have been removed. This page shows the server with all tools.</Text>
        </Alert>
      )}
      {views.length > 0 && (
        <Section
          title="URL"
          text="A view exposes a subset of the tools, with its own titles and descriptions. The key, snippets, and check below apply to the selected URL."
        >
          <Select
            label="Connect to"
            data={[
              { value: '', label: 'Server with all tools' },
              ...views.map((name) => ({ value: name, label: `View ${toVisible(name)}` })),
            ]}
            value={view ?? ''}
            onChange={choose}
            maw={480}
          />
        </Section>
      )}
    </>
  );
  return { view, urlSection };
}
