"""Methods whose server goes on with the first uploads that arrive."""

from .synchronous import Server


class FedBuff(Server):
    """FedBuff with full gradients: the server adds the mean of the changes that have arrived, old ones scaled down.

    Source: J. Nguyen et al., "Federated learning with buffered asynchronous aggregation", 2022, arXiv 2106.06639, from
    public accounts of it: changes from a model that is s steps old count 1/(1 + s)^a. The delay-adaptive weights
    m/max(m, s) are those of asynchronous SGD.
    """

    k0 = 5
    lr = 0.01
    server_lr = 1.0
    a = 0.5
    weight = "power"
    epochs = 0

    def begin(self, i):
        w = self.x
        for _ in range(self.epochs or self.k0):
            w = w - self.lr * self.clients[i].gradient(w)
        return w - self.x

    def step(self, uploads, ages):
        if self.weight == "delay":
            factors = [self.m / max(self.m, s) for s in ages]
        else:
            factors = [1 / (1 + s) ** self.a for s in ages]
        scaled = sum(factor * change for factor, change in zip(factors, uploads.values(), strict=True))
        self.x = self.x + self.server_lr * scaled / len(uploads)


class Malenia(Server):
    """Malenia SGD with full gradients: a step once every client has sent one, or more, at the newest model.

    Source: A. Tyurin, P. Richtárik, "Optimal time complexities of parallel stochastic optimization methods under a
    fixed computation model", 2023, arXiv 2305.12387, from memory: a step takes the mean over all clients of the means
    of their B_i gradients, as soon as the harmonic mean of the B_i is S/m. The default step is 1/L with L = max L_i.
    """

    everyone = True
    gamma = None
    S = None
    stop = False

    def prepare(self):
        self.gamma = self.gamma or 1 / max(client.lipschitz for client in self.clients)
        self.sent = [[] for _ in self.clients]

    def begin(self, i):
        return self.clients[i].gradient(self.x)

    def drops(self, age):
        return self.stop

    def step(self, uploads, ages):
        for (i, g), age in zip(uploads.items(), ages, strict=True):
            if age == 0:
                self.sent[i].append(g)
        if not all(self.sent) or self.m / sum(1 / len(own) for own in self.sent) < (self.S or self.m) / self.m:
            return False
        self.x = self.x - self.gamma * sum(sum(own) / len(own) for own in self.sent) / self.m
        self.sent = [[] for _ in self.clients]
        return True


class Rennala(Server):
    """Rennala SGD with full gradients: steps with the first B gradients at the newest model.

    Source: A. Tyurin, P. Richtárik, "Optimal time complexities of parallel stochastic optimization methods under a
    fixed computation model", 2023, arXiv 2305.12387, from memory: gradients at older models are ignored, or stopped at
    each step. The default step is 1/L with L = max L_i.
    """

    gamma = None
    B = 1
    stop = False

    def prepare(self):
        self.gamma = self.gamma or 1 / max(client.lipschitz for client in self.clients)
        self.used = []

    def begin(self, i):
        return self.clients[i].gradient(self.x)

    def drops(self, age):
        return self.stop

    def step(self, uploads, ages):
        self.used += [g for g, age in zip(uploads.values(), ages, strict=True) if age == 0]
        if len(self.used) < self.B:
            return False
        self.x = self.x - self.gamma * sum(self.used) / len(self.used)
        self.used = []
        return True


class Ringleader(Server):
    """Ringleader ASGD with full gradients: each client has its turn once in a cycle, and a step takes the mean of a
    table.

    Source: A. Maranjyan, P. Richtárik, "Ringleader ASGD", 2025, arXiv 2509.22860, from memory: steps wait until the
    table has a gradient of every client; what a client sends after its turn goes into the table of the next cycle. The
    default step is 1/(2mL) with L = max L_i, a choice of mpifed.
    """

    everyone = True
    gamma = None

    def prepare(self):
        self.gamma = self.gamma or 1 / (2 * self.m * max(client.lipschitz for client in self.clients))
        self.table = [[] for _ in self.clients]
        self.open()

    def open(self):
        self.waiting = set(range(self.m))
        self.later = [[] for _ in self.clients]

    def begin(self, i):
        return self.clients[i].gradient(self.x)

    def step(self, uploads, ages):
        for i, g in uploads.items():
            (self.table if i in self.waiting else self.later)[i].append(g)
        turns = self.waiting & uploads.keys()
        if all(self.table) and turns:
            self.x = self.x - self.gamma * sum(sum(own) / len(own) for own in self.table) / self.m
            self.waiting -= turns
        if self.waiting:
            return False
        self.table = self.later
        self.open()
        return True


class Ringmaster(Server):
    """Ringmaster ASGD with full gradients: steps with gradients that are fewer than R steps old.

    Source: A. Maranjyan, A. Tyurin, P. Richtárik, "Ringmaster ASGD", 2025, arXiv 2501.16168, from memory: an older
    gradient is ignored, or stopped as soon as it is R steps old. The default step is 1/(2RL) with L = max L_i.
    """

    gamma = None
    R = None
    stop = False

    def prepare(self):
        self.R = self.R or self.m
        self.gamma = self.gamma or 1 / (2 * self.R * max(client.lipschitz for client in self.clients))

    def begin(self, i):
        return self.clients[i].gradient(self.x)

    def drops(self, age):
        return self.stop and age >= self.R

    def step(self, uploads, ages):
        used = [g for g, age in zip(uploads.values(), ages, strict=True) if age < self.R]
        if not used:
            return False
        self.x = self.x - self.gamma * sum(used) / len(used)
        return True
