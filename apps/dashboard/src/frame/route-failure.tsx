import { Container } from '@mantine/core';
import { useRouteError } from 'react-router';
import { ProblemAlert } from '../ui/states/problem-alert.tsx';

/** Page that could not be rendered or loaded, for example because a newer version was deployed in the meantime. */
export function RouteFailure() {
  const error = useRouteError();
  return (
    <Container size="sm" pt={48}>
      <ProblemAlert error={error} title="This page could not be shown" onRetry={() => location.reload()} />
    </Container>
  );
}
