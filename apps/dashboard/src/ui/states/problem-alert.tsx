import { Alert, Button, Group, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { ApiProblem } from '../../api.ts';
import { Hint } from '../text/hint.tsx';
import { toVisible } from '../text/visible.ts';
import { toScreenTerms } from './screen-terms.ts';

export function toSentence(text: string): string {
  const visibleText = toVisible(toScreenTerms(text));
  const capitalized = visibleText.charAt(0).toUpperCase() + visibleText.slice(1);
  return /[.!?]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}

export function getErrorMessage(error: unknown): string {
  return toSentence(error instanceof Error ? error.message : String(error));
}

export function ProblemAlert({ error, onRetry, title }: { error: unknown; onRetry?: () => void; title?: string }) {
  const requestId = error instanceof ApiProblem ? error.requestId : undefined;
  return (
    <Alert color="red" icon={<IconAlertTriangle size={18} />} title={title ?? 'Something went wrong'} role="alert">
      <Text>{getErrorMessage(error)}</Text>
      {(onRetry || requestId) && (
        <Group mt="xs" gap="sm">
          {onRetry && (
            <Button variant="default" onClick={onRetry}>
              Try again
            </Button>
          )}
          {requestId && <Hint size="xs">Request {requestId}</Hint>}
        </Group>
      )}
    </Alert>
  );
}
