import { Box, Button, Group, Stack, Text } from '@mantine/core';
import { IconLogin2 } from '@tabler/icons-react';
import { useCanEdit } from '../../frame/session.ts';
import { Outcome } from './outcome.tsx';
import { useLoginCheck } from './use-login-check.ts';

type Props = { slug: string; url: string; isUnsaved?: boolean };

/** Tries the login of a server as it is stored, at its real provider. */
export function LoginCheck({ slug, url, isUnsaved = false }: Props) {
  const { check, start, stop } = useLoginCheck(slug, url);
  const canEdit = useCanEdit();
  const isUnderWay = check.step === 'starting' || check.step === 'finishing';
  return (
    <Stack gap="sm">
      <Group gap="sm">
        <Button
          variant="default"
          leftSection={<IconLogin2 size={16} />}
          onClick={() => void start()}
          loading={isUnderWay}
          disabled={!canEdit || isUnsaved || check.step === 'waiting'}
        >
          Try the login
        </Button>
        <Text size="sm" c="dimmed" flex="1 1 14rem">
          {hint(canEdit, isUnsaved)}
        </Text>
      </Group>
      <Box aria-live="polite">
        <Outcome check={check} callbackUrl={`${url}/callback`} onStop={stop} />
      </Box>
    </Stack>
  );
}

function hint(canEdit: boolean, isUnsaved: boolean): string {
  if (!canEdit) return 'Viewers cannot try the login.';
  if (isUnsaved) return 'Save your changes first: the login runs with what is stored.';
  return 'Opens a tab and logs you in at the provider, to see whether it works. Nothing of it is kept.';
}
