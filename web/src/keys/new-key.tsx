import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconEyeOff } from '@tabler/icons-react';
import { claudeCodeCommand } from '../../../src/domain/clients/client.ts';
import type { NewApiKey } from '../answers.ts';
import { useSession } from '../frame/session.ts';
import { ProblemAlert } from '../ui/states/problem-alert.tsx';
import { CodeBlock } from '../ui/text/code-block.tsx';

type Props = {
  made: NewApiKey;
  onClose: () => void;
  /** Of a key that replaces another one. */
  onRevokeOld: (() => void) | undefined;
  isRevoking: boolean;
  failure: Error | null;
};

/** The key, shown only once, and how to use it. */
export function NewKey({ made, onClose, onRevokeOld, isRevoking, failure }: Props) {
  const { base_url, management_url } = useSession();
  const isManaging = made.scopes.includes('manage') || made.scopes.includes('manage:read');
  const address = made.servers?.[0] ?? made.views?.[0];
  const slug = address ?? 'SLUG';
  const agent = claudeCodeCommand({
    ...(isManaging
      ? { name: 'toolhost', url: management_url }
      : { name: slug.replace('/', '-'), url: `${base_url}/mcp/${slug}` }),
    token: made.key,
  });
  return (
    <Stack gap="sm">
      <Alert color="yellow" icon={<IconEyeOff size={18} />} title="Copy it now">
        It is not stored and cannot be shown again.
      </Alert>
      <CodeBlock code={made.key} label="API key" />
      <Text size="sm" fw={600} mt="xs">
        How to use it
      </Text>
      <Text size="sm">With an agent{isManaging || address ? '' : ', where SLUG is the slug of the server'}:</Text>
      <CodeBlock code={agent} label="command for Claude Code" />
      {isManaging && (
        <>
          <Text size="sm">With the REST API or the command line:</Text>
          <CodeBlock
            code={`curl -s ${base_url}/api/v1/servers -H 'Authorization: Bearer ${made.key}'`}
            label="request with curl"
          />
        </>
      )}
      {onRevokeOld && <Text size="sm">Keys that were made with the old key are revoked with it.</Text>}
      {failure && <ProblemAlert error={failure} />}
      <Group justify="flex-end" mt="sm">
        {onRevokeOld ? (
          <>
            <Button variant="default" onClick={onClose}>
              Keep both for now
            </Button>
            <Button onClick={onRevokeOld} loading={isRevoking}>
              I have copied it, revoke the old key
            </Button>
          </>
        ) : (
          <Button onClick={onClose}>I have copied it</Button>
        )}
      </Group>
    </Stack>
  );
}
