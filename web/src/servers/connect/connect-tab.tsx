import { Alert, Select, Stack, Text } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { useState } from 'react';
import { useLocation } from 'react-router';
import { Section } from '../../ui/section.tsx';
import { visible } from '../../ui/text/visible.ts';
import { viewsOf } from '../config.ts';
import { useShownServer } from '../server-page.tsx';
import { Clients } from './clients.tsx';
import { ConnectionCheckSection } from './connection-check.tsx';
import { CredentialSection } from './credential-section.tsx';

/** From the address to a connected client: the credential, the snippet, the check. */
export function ConnectTab() {
  const { server, config } = useShownServer();
  const isNew = (useLocation().state as { isNew?: boolean } | null)?.isNew === true;
  const [credential, setCredential] = useState('');
  const [view, setView] = useState<string>();
  const views = Object.keys(viewsOf(config));
  const choose = (next: string | null) => {
    setView(next === null || next === '' ? undefined : next);
    setCredential('');
  };
  const below = (url: string) => (view === undefined ? url : `${url}/${view}`);
  const isLogin = server.access === 'oauth' || server.access === 'passthrough';
  const isForwarded = server.access === 'caller_token' && !server.open;
  const placeholder = isForwarded ? 'YOUR_TOKEN' : 'YOUR_API_KEY';
  return (
    <Stack gap="md">
      {isNew && (
        <Alert color="green" icon={<IconCircleCheck size={18} />} title="Your server is running">
          <Text size="sm">It answers at its address now. Connect a client, or try a tool first.</Text>
        </Alert>
      )}
      {views.length > 0 && (
        <Section title="Address" text="A view has some of the tools, with texts and limits of its own.">
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
      <CredentialSection
        key={view ?? ''}
        view={view}
        credential={credential}
        onCredential={setCredential}
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
      <ConnectionCheckSection slug={server.slug} isOfView={view !== undefined} />
    </Stack>
  );
}
