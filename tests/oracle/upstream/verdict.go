// What every plugin says of a pod on every node, and what the framework makes of it.

package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type stageVerdict struct {
	Stage   string   `json:"stage"`
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

type nodeVerdict struct {
	Feasible   bool                `json:"feasible"`
	Plugin     string              `json:"plugin,omitempty"`
	Code       string              `json:"code,omitempty"`
	Reasons    []string            `json:"reasons,omitempty"`
	AllFailing map[string][]string `json:"all_failing,omitempty"`
	AllCodes   map[string]string   `json:"all_codes,omitempty"`
	Excluded   bool                `json:"excluded_by_prefilter_result,omitempty"`
	Scores     map[string]int64    `json:"scores,omitempty"`
	Total      *int64              `json:"total,omitempty"`
}

type podVerdict struct {
	Ignored    string                  `json:"ignored,omitempty"`
	PreEnqueue *stageVerdict           `json:"preenqueue,omitempty"`
	PreFilter  *stageVerdict           `json:"prefilter"`
	Nominated  string                  `json:"nominated_node,omitempty"`
	Taken      string                  `json:"nominated_node_taken,omitempty"`
	Error      string                  `json:"error,omitempty"`
	Nodes      map[string]*nodeVerdict `json:"nodes"`
	Own        map[string][]string     `json:"own,omitempty"`
}

// reasons puts NodeResourcesFit's reasons for extended resources, which
// upstream lists in Go map order, in sorted order.
func reasons(s *fwk.Status) []string {
	r := append([]string{}, s.Reasons()...)
	if len(r) == 0 && s.AsError() != nil {
		r = []string{s.AsError().Error()}
	}
	from := len(r)
	for from > 0 && strings.HasPrefix(r[from-1], "Insufficient ") {
		switch strings.TrimPrefix(r[from-1], "Insufficient ") {
		case "cpu", "memory", "ephemeral-storage":
		default:
			from--
			continue
		}
		break
	}
	sort.Strings(r[from:])
	return r
}

// single runs every PreFilter and Filter plugin on its own, never stopping at
// a failure, with upstream's treatment of skipped plugins and nominated pods.
type single struct {
	w     *world
	pod   *v1.Pod
	state fwk.CycleState
	alone bool // leave out pods that are nominated for the node
	skip  sets.Set[string]
	fail  map[string]*fwk.Status // rejected in PreFilter
}

func (w *world) newSingle(pod *v1.Pod, nodes []fwk.NodeInfo) *single {
	s := &single{w: w, pod: pod, state: framework.NewCycleState(), skip: sets.New[string](), fail: map[string]*fwk.Status{}}
	for _, p := range w.list.PreFilter.Enabled {
		_, st := w.plugins[p.Name].(fwk.PreFilterPlugin).PreFilter(w.ctx, s.state, pod, nodes)
		if st.IsSkip() {
			s.skip.Insert(p.Name)
		} else if !st.IsSuccess() {
			s.fail[p.Name] = st
		}
	}
	return s
}

func (s *single) node(ni fwk.NodeInfo) (order []string, failing map[string][]string, codes map[string]string) {
	failing, codes = map[string][]string{}, map[string]string{}
	type pass struct {
		state fwk.CycleState
		info  fwk.NodeInfo
	}
	passes := []pass{}
	if nominated := s.w.fw.NominatedPodsForNode(ni.Node().Name); len(nominated) > 0 && !s.alone {
		st, info, added := s.state.Clone(), ni.Snapshot(), false
		for _, pi := range nominated {
			if prio(pi.GetPod()) < prio(s.pod) || pi.GetPod().UID == s.pod.UID {
				continue
			}
			added = true
			info.AddPodInfo(pi)
			for _, p := range s.w.list.PreFilter.Enabled {
				if s.skip.Has(p.Name) || s.fail[p.Name] != nil {
					continue
				}
				if ext := s.w.plugins[p.Name].(fwk.PreFilterPlugin).PreFilterExtensions(); ext != nil {
					ext.AddPod(s.w.ctx, st, s.pod, pi, info)
				}
			}
		}
		if added {
			passes = append(passes, pass{st, info})
		}
	}
	passes = append(passes, pass{s.state, ni})
	for _, ps := range passes {
		for _, p := range s.w.list.Filter.Enabled {
			if s.skip.Has(p.Name) {
				continue
			}
			if _, done := failing[p.Name]; done {
				continue
			}
			st := s.fail[p.Name]
			if st == nil {
				st = s.w.plugins[p.Name].(fwk.FilterPlugin).Filter(s.w.ctx, ps.state, s.pod, ps.info)
			}
			if !st.IsSuccess() {
				failing[p.Name], codes[p.Name] = reasons(st), st.Code().String()
				order = append(order, p.Name)
			}
		}
	}
	for name, st := range s.fail { // PreFilter-only plugins
		if _, ok := failing[name]; !ok {
			failing[name], codes[name] = reasons(st), st.Code().String()
		}
	}
	return order, failing, codes
}

func prio(p *v1.Pod) int32 {
	if p.Spec.Priority != nil {
		return *p.Spec.Priority
	}
	return 0
}

func (w *world) nodeList() []fwk.NodeInfo {
	l, _ := w.snap.ListNodesInPlacement()
	return l
}

func (w *world) preEnqueue(pod *v1.Pod) *stageVerdict {
	for _, p := range w.fw.PreEnqueuePlugins() {
		if st := p.PreEnqueue(w.ctx, pod); !st.IsSuccess() {
			return &stageVerdict{"PreEnqueue", p.Name(), st.Code().String(), reasons(st)}
		}
	}
	return nil
}

var inconsistencies int

func (w *world) inconsistent(format string, a ...any) {
	inconsistencies++
	fmt.Fprintf(os.Stderr, "INCONSISTENT "+format+"\n", a...)
}

func (w *world) verdict(pod *v1.Pod) *podVerdict {
	v := &podVerdict{Ignored: w.doc.ignored[podKey(pod)], PreEnqueue: w.preEnqueue(pod), Nodes: map[string]*nodeVerdict{}}
	all := w.nodeList()
	one := w.newSingle(pod, all)
	state := framework.NewCycleState()
	preRes, st, unsched := w.fw.RunPreFilterPlugins(w.ctx, state, pod)
	if !st.IsSuccess() {
		name := st.Plugin()
		if name == "" {
			name = strings.Join(sets.List(unsched), ",")
		}
		v.PreFilter = &stageVerdict{"PreFilter", name, st.Code().String(), reasons(st)}
		for _, ni := range all {
			_, failing, codes := one.node(ni)
			v.Nodes[ni.Node().Name] = &nodeVerdict{Plugin: name, Code: st.Code().String(), Reasons: reasons(st), AllFailing: failing, AllCodes: codes}
		}
		return v
	}
	var feasible []fwk.NodeInfo
	for _, ni := range all {
		name := ni.Node().Name
		order, failing, codes := one.node(ni)
		nv := &nodeVerdict{AllFailing: failing, AllCodes: codes}
		v.Nodes[name] = nv
		if !preRes.AllNodes() && !preRes.NodeNames.Has(name) {
			nv.Excluded = true
			nv.Plugin = strings.Join(sets.List(unsched), ",")
			nv.Code = fwk.UnschedulableAndUnresolvable.String()
			nv.Reasons = []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(unsched))}
			continue
		}
		st := w.fw.RunFilterPluginsWithNominatedPods(w.ctx, state, pod, ni)
		if st.IsSuccess() {
			nv.Feasible = true
			feasible = append(feasible, ni)
			if *flagCheck && len(failing) != 0 {
				w.inconsistent("%s on %s: framework says feasible, single plugins %v", podKey(pod), name, failing)
			}
			continue
		}
		nv.Plugin, nv.Code, nv.Reasons = st.Plugin(), st.Code().String(), reasons(st)
		if *flagCheck && (len(order) == 0 || order[0] != nv.Plugin || strings.Join(failing[order[0]], "|") != strings.Join(nv.Reasons, "|")) {
			w.inconsistent("%s on %s: framework says %s %v, single plugins %v %v", podKey(pod), name, nv.Plugin, nv.Reasons, order, failing)
		}
	}
	if nn := pod.Status.NominatedNodeName; nn != "" {
		v.Nominated = nn
		if nv := v.Nodes[nn]; nv != nil {
			// Upstream tries the nominated node first, even one that a
			// PreFilterResult excludes, and takes it if it passes the filters.
			ni, err := w.snap.GetNodeInPlacement(nn)
			if err == nil && w.fw.RunFilterPluginsWithNominatedPods(w.ctx, state, pod, ni).IsSuccess() {
				v.Taken = nn
			}
		}
	}
	if len(feasible) == 0 {
		return v
	}
	scored, err := w.score(state, pod, feasible)
	if err != nil {
		v.Error = err.Error()
		return v
	}
	for _, s := range scored {
		nv := v.Nodes[s.Name]
		nv.Scores = map[string]int64{}
		for _, ps := range s.Scores {
			nv.Scores[ps.Name] = ps.Score / w.weight[ps.Name]
		}
		total := s.TotalScore
		nv.Total = &total
	}
	return v
}

// running judges every running pod as if it were taken out and scheduled anew. Its whole node is emptied and filled
// again without it: a node's used ports are a set, so taking out one of two pods that share a port would free the port.
func (w *world) running() (map[string]*podVerdict, error) {
	verdicts := map[string]*podVerdict{}
	on := map[string][]*v1.Pod{}
	for _, pod := range w.doc.bound {
		on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
	}
	for _, pod := range w.doc.bound {
		if _, err := w.snap.GetNodeInPlacement(pod.Spec.NodeName); err != nil {
			continue // on a node that the document lacks
		}
		for _, one := range on[pod.Spec.NodeName] {
			if err := w.cache.RemovePod(w.logger, one); err != nil {
				return nil, err
			}
		}
		for _, one := range on[pod.Spec.NodeName] {
			if one == pod {
				continue
			}
			if err := w.cache.AddPod(w.logger, one); err != nil {
				return nil, err
			}
		}
		if err := w.cache.UpdateSnapshot(w.logger, w.snap); err != nil {
			return nil, err
		}
		free := pod.DeepCopy()
		free.Spec.NodeName = ""
		free.Status.NominatedNodeName = ""
		v := w.verdict(free)
		v.Own = w.onOwnNode(free, pod.Spec.NodeName)
		verdicts[podKey(pod)] = v
		if err := w.cache.AddPod(w.logger, pod); err != nil {
			return nil, err
		}
	}
	return verdicts, w.cache.UpdateSnapshot(w.logger, w.snap)
}

// onOwnNode is what refuses the pod among those that run: pods that are only nominated for the node do not count.
func (w *world) onOwnNode(pod *v1.Pod, node string) map[string][]string {
	s := w.newSingle(pod, w.nodeList())
	s.alone = true
	ni, err := w.snap.GetNodeInPlacement(node)
	if err != nil {
		return nil
	}
	_, failing, _ := s.node(ni)
	return failing
}

func (w *world) score(state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, error) {
	if st := w.fw.RunPreScorePlugins(w.ctx, state, pod, nodes); !st.IsSuccess() {
		return nil, st.AsError()
	}
	scored, st := w.fw.RunScorePlugins(w.ctx, state, pod, nodes)
	if !st.IsSuccess() {
		return nil, st.AsError()
	}
	return scored, nil
}
