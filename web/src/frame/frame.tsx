import { AppShell, Burger, Container, Group } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Suspense, useEffect } from 'react';
import { Outlet, ScrollRestoration, useLocation, useNavigation } from 'react-router';
import { ApiProblem } from '../api.ts';
import { LoadingPage } from '../ui/states/loading.tsx';
import { ProblemAlert } from '../ui/states/problem-alert.tsx';
import { ConnectionNotice } from './connection-notice.tsx';
import { Landing } from './landing.tsx';
import { Logo } from './logo.tsx';
import { Navigation } from './navigation.tsx';
import { Progress } from './progress.tsx';
import { SessionProvider, useSessionQuery } from './session.ts';
import { SessionNotice } from './session-notice.tsx';

/** The frame around every page; people who are not signed in see the landing page. */
export function Frame() {
  const session = useSessionQuery();
  if (session.data) {
    return (
      <SessionProvider value={session.data}>
        <Shell />
      </SessionProvider>
    );
  }
  if (session.error instanceof ApiProblem && session.error.status === 401) return <Landing />;
  if (session.error) {
    return (
      <Container size="xs" pt={80}>
        <ProblemAlert error={session.error} onRetry={() => session.refetch()} />
      </Container>
    );
  }
  return <LoadingPage />;
}

function Shell() {
  const [isOpen, menu] = useDisclosure(false);
  const { pathname } = useLocation();
  const isLoading = useNavigation().state === 'loading';
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes whenever the page changes
  useEffect(() => menu.close(), [pathname]);
  return (
    <AppShell
      header={{ height: { base: 56, sm: 0 } }}
      navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding={{ base: 'md', sm: 'xl' }}
    >
      <a className="th-skip" href="#main">
        Skip to the page
      </a>
      <AppShell.Header hiddenFrom="sm" px="md">
        <Group h="100%" justify="space-between">
          <Logo />
          <Burger
            opened={isOpen}
            onClick={menu.toggle}
            size="sm"
            aria-label={isOpen ? 'Close the menu' : 'Open the menu'}
            aria-expanded={isOpen}
          />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Side bar" component="aside">
        <Navigation />
      </AppShell.Navbar>
      <AppShell.Main className="th-main" id="main" tabIndex={-1}>
        <Progress isActive={isLoading} />
        <div className="th-page">
          <div className="th-notices">
            <SessionNotice />
            <ConnectionNotice />
          </div>
          <Suspense fallback={<LoadingPage />}>
            <Outlet />
          </Suspense>
        </div>
      </AppShell.Main>
      <ScrollRestoration />
    </AppShell>
  );
}
