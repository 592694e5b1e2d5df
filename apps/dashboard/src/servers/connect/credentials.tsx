import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert } from '../../ui/states/problem-alert.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { CodeBlock } from '../../ui/text/code-block.tsx';
import { useCurrentServer } from '../server-page.tsx';

type Props = { credential: string; onCredential: (credential: string) => void };

export function TokenCredential({ credential, onCredential }: Props) {
  return (
    <Section title="Credential" text="Callers send their own API token. Toolhost forwards it and stores nothing.">
      <TextInput
        label="Token for snippets"
        description="Your own API token. It is only inserted into the snippets below and does not leave this page."
        value={credential}
        onChange={(event) => onCredential(event.currentTarget.value.replace(/^(?:Authorization:\s*)?Bearer\s+/i, ''))}
        error={/\s/.test(credential) && 'A token contains no spaces. Paste only the token.'}
        className="th-mono"
        maw={480}
      />
    </Section>
  );
}

/** API key that can call the server or one of its views. */
export function KeyCredential({ view, credential, onCredential }: Props & { view: string | undefined }) {
  const { server } = useCurrentServer();
  const canEdit = useCanEdit();
  const noun = view === undefined ? 'server' : 'view';
  const create = useAction({
    run: () =>
      api('createApiKey', {
        name: `${server.name.slice(0, 80)} client`,
        scopes: ['call'],
        ...(view === undefined ? { servers: [server.slug] } : { views: [`${server.slug}/${view}`] }),
      }),
    refresh: [['keys']],
    onSuccess: ({ key }) => onCredential(key),
  });
  return (
    <Section title="Credential" text="Callers of this server use a workspace API key.">
      {credential ? (
        <Stack gap="xs">
          <CodeBlock code={credential} label="API key" />
          <Alert color="yellow">
            This key is shown only once. It is already in the snippets below. Copy what you need.
          </Alert>
        </Stack>
      ) : (
        <Stack gap="sm">
          {create.error && <ProblemAlert error={create.error} />}
          <Group gap="sm">
            <Button
              leftSection={<IconKey size={16} />}
              onClick={() => create.mutate()}
              loading={create.isPending}
              disabled={!canEdit}
            >
              Create key for this {noun}
            </Button>
            <Text size="sm" c="dimmed">
              It can call only this {noun}.
            </Text>
          </Group>
          <ViewerNote>Ask an editor or owner for a key.</ViewerNote>
        </Stack>
      )}
    </Section>
  );
}
