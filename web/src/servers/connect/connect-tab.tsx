import { Alert, Stack, Text } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { useState } from 'react';
import { useLocation } from 'react-router';
import { useShownServer } from '../server-page.tsx';
import { Clients } from './clients.tsx';
import { ConnectionCheckSection } from './connection-check.tsx';
import { CredentialSection } from './credential-section.tsx';

/** From the address to a connected client: the credential, the snippet, the check. */
export function ConnectTab() {
  const { server } = useShownServer();
  const isNew = (useLocation().state as { isNew?: boolean } | null)?.isNew === true;
  const [credential, setCredential] = useState('');
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
      <CredentialSection credential={credential} onCredential={setCredential} isForwarded={isForwarded} />
      <Clients
        connection={{
          name: server.slug,
          url: server.url,
          hostUrl: server.host_url,
          token: isLogin ? undefined : credential || placeholder,
        }}
      />
      <ConnectionCheckSection slug={server.slug} />
    </Stack>
  );
}
